package redis

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// subject is a key to be looked at.
type subject struct {
	key   string
	match class.Match
	// metaPrefix is the prefix under which metadata is known to stand beside the
	// key; "" if none is known.
	metaPrefix string
	memory
}

// memory is what the table knows of a key.
type memory struct {
	// known says that it has it: its idle time would only tell when we read it
	// last.
	known bool
	// ours says that it was a lock of ours at the last look: metadata is looked
	// for under every prefix, whatever the key holds now.
	ours bool
	// typ is its type at the last look, "" if not known.
	typ string
	// last is the last reading, if seen says that there was one.
	last source.Known
	seen bool
}

// wasRead says that the members of the key were read at the last look, when it was
// of the type that it has now.
func (s *keyReading) wasRead() bool {
	return s.seen && s.last.Type == s.sample.Type && !s.last.TooLarge
}

// prefixes returns where metadata beside s is looked for before its value is
// known.
func (s subject) prefixes(all []string) []string {
	switch {
	case s.metaPrefix != "":
		return []string{s.metaPrefix}
	case s.ours:
		return all
	default:
		return nil
	}
}

// seenAs is how a look at a key ended.
type seenAs int

const (
	unread seenAs = iota // it could not be read this time; nothing is known
	gone
	there
	retyped // it is of another type than the one it was read as
)

// keyReading is what was read of one key.
type keyReading struct {
	subject
	as       seenAs
	sample   formats.Sample
	expireAt int64
	idle     time.Duration
	at       time.Time
	meta     metadata
	// lost says that meta proves a hold that ended without a release.
	lost bool

	// What [observer.complete] makes of it.
	lock      *locksteward.Observation // nil: no lock is there
	candidate *locksteward.Observation // nil: it does not only look like a lock by name
	losses    []locksteward.Loss       // that metadata proves
	waiters   []locksteward.Waiter     // of the lock, where they were read with it
}

// metadata is what is kept beside a key, as far as it was read.
type metadata struct {
	prefix string
	small  bool // within the bounds
	there  bool
	record *record.Meta
}

// id returns the acquisition id in the lock's value, "" if it is not ours.
func (s *keyReading) id() string {
	if s.sample.Type != "string" || s.sample.TooLarge {
		return ""
	}
	id, _ := record.ParseValue(s.sample.Value)
	return id
}

// isSharedInteger says that a value is one of the whole numbers below 10,000, of
// which Redis keeps one object each for all keys (OBJ_SHARED_INTEGERS): its idle
// time is that of the number, not of the key, and may be as old as the server.
func isSharedInteger(value []byte) bool {
	if len(value) == 0 || len(value) > 4 || value[0] == '0' && len(value) > 1 {
		return false
	}
	return !slices.ContainsFunc(value, func(c byte) bool { return c < '0' || c > '9' })
}

// weightOf is how many bytes the names of members have.
func weightOf(members []formats.Member) (n int) {
	for i := range members {
		n += len(members[i].Name)
	}
	return n
}

// take decodes metadata. What is malformed in it is left out: the rest is still
// useful. What is longer than the bound counts as never read, and what says that the
// lock is free is of no hold.
func (m *metadata) take(text string) {
	m.record, m.there, m.small = nil, text != "", len(text) <= record.MaxMeta
	if !m.there || !m.small {
		return
	}
	decoded, _ := record.Decode(text)
	if decoded.ID == "" && decoded.Free > 0 {
		m.there = false
		return
	}
	m.record = decoded
}

// reading returns what the scanner gets of it.
func (s *keyReading) reading() source.Reading {
	r := source.Reading{Name: s.key, At: s.at, Waiters: s.waiters, Losses: s.losses}
	switch {
	case s.as == unread || s.as == retyped:
	case s.as == gone:
		r.State = source.Absent
	case s.lock != nil:
		r.State, r.Lock = source.Held, s.lock
		r.WaitersApart = s.lock.Library == formats.Locksteward
	default:
		r.State, r.Lock = source.NotLock, s.candidate
	}
	return r
}

// unknownIdle is the idle time of a key of which it was not asked.
const unknownIdle = -1
