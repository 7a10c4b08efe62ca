package formats

import (
	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// MaxNamedString is the longest string in bytes that a whole word of its name
// makes a lock; a longer one under such a name is more likely data.
const MaxNamedString = 256

// all is in the order in which dialects are tried: the most particular first.
var all = func() []Dialect {
	list := []Dialect{lockstewardDialect{}}
	for _, f := range families {
		list = append(list, f)
	}
	return append(list, tokenDialect{}, unknownDialect{})
}()

// All returns the dialects in the order in which [Recognise] tries them; the
// last one takes everything.
func All() []Dialect { return append([]Dialect(nil), all...) }

// Get returns the dialect of that name.
func Get(name string) (Dialect, bool) {
	for _, d := range all {
		if d.Name() == name {
			return d, true
		}
	}
	return nil, false
}

// Recognise decodes s with the first dialect that knows it. It never fails:
// what fits nothing is "unknown" and never releasable.
func Recognise(s Sample) Decoded {
	if whole(s) {
		s.text, s.unwrapped = unwrap(string(s.Value)), true // once for all dialects
	}
	if d, ok := (lockstewardDialect{}).Recognise(s); ok {
		return d
	}
	for _, f := range families {
		// As family.Recognise, without a copy of the sample for each family.
		if f.typ != "" && f.typ != s.Type || f.key != nil && !f.key(s.Key) {
			continue
		}
		if d, ok := f.recognise(s); ok {
			d.Dialect = f.name
			return d
		}
	}
	if d, ok := (tokenDialect{}).Recognise(s); ok {
		return d
	}
	return unknownOf(s)
}

// Decide says whether the key is a lock or a candidate, or, with false, neither
// . A configured class and a structure that nothing else has make a
// lock whatever its name; a whole word of the name does for a short string and
// for a shape known of a lock library. A placeholder is a lock here: only who knows
// the release that put it there ([StandOf]) can say that it is none.
func Decide(m class.Match, s Sample, d Decoded) (locksteward.Kind, bool) {
	if _, _, helper := Companion(s.Key); helper || isWorkCounter(s) {
		return "", false
	}
	switch {
	case m.Configured, d.Confidence == locksteward.ConfidenceHigh, IsStand(s):
		return locksteward.KindLock, true
	case m.Word && s.Type == typeString && s.Size <= MaxNamedString,
		m.Word && s.Type != typeString && d.Confidence == locksteward.ConfidenceMedium:
		return locksteward.KindLock, true
	case m.Word, m.Candidate:
		return locksteward.KindCandidate, true
	default:
		return "", false
	}
}

// Types as TYPE says them.
const (
	typeString = "string"
	typeHash   = "hash"
	typeZSet   = "zset"
	typeSet    = "set"
	typeList   = "list"
	typeStream = "stream"
)

// lineage is the identity of a lock whose bytes may be the same in the next
// acquisition: its expiry tells them apart, without expiry nothing does.
func lineage(s Sample) locksteward.Identity {
	if s.TTL == locksteward.NoExpiry {
		return locksteward.IdentityNone
	}
	return locksteward.IdentityLineage
}

// plain is the value of a string without the serialisation that a client library
// put around it.
func (s *Sample) plain() string {
	if s.unwrapped {
		return s.text
	}
	return unwrap(string(s.Value))
}

// whole says that the sample has all bytes of a string.
func whole(s Sample) bool {
	return s.Type == typeString && !s.TooLarge && int64(len(s.Value)) == s.Size
}
