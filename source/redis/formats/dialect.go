// Package formats knows how lock libraries store their locks in Redis: how to
// recognise one, read it, release it safely and wake its waiters. One file per
// family. The package does no I/O: it is given values and gives commands.
//
// All functions are safe for concurrent use. Foreign bytes never make them
// panic; what fits nothing is "unknown", and doubt makes a lock unreleasable.
package formats

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// Sample is what was read of one key, bounded.
type Sample struct {
	Key  string
	Type string // as TYPE says
	TTL  time.Duration
	// Size is bytes of a string, members of any other type.
	Size int64
	// TooLarge says that Value, Fields or Members is incomplete or absent.
	TooLarge bool
	Value    []byte            // string: at most the first 4,096 bytes
	Fields   map[string]string // hash: all fields
	Members  []Member          // zset in its order, list in its order, set sorted: all of them
	// Beside is what was read of the keys that [Asks] named, by key.
	Beside map[string]Beside
	// Meta is the decoded lock/record metadata that stands beside the key, valid
	// or not for this value; nil if there is none.
	Meta *record.Meta

	// text is Value without the serialisation around it, once unwrapped is set.
	text      string
	unwrapped bool
}

// Member is one element of a sorted set, a set or a list.
type Member struct {
	Name  string
	Score float64 // of a sorted set
}

// Decoded is what a dialect made of a sample.
type Decoded struct {
	Dialect    string
	Confidence locksteward.Confidence
	Identity   locksteward.Identity
	Holder     locksteward.Holder
	// Acquired is when the holder took the lock, as the value says by its writer's
	// clock; zero if it does not. Asked says that it is when the holder asked for
	// it, for which it may have waited since. Mode is "read" or "write" of locks
	// that have both.
	Acquired time.Time
	Asked    bool
	Mode     string
	Count    int64 // re-entrancy; 1 if the dialect has none
	Waiters  int   // negative: cannot be told
	Fence    int64
	Claim    *locksteward.Claim
	// SharedToken and TokenKind: see locksteward.Observation.
	SharedToken bool
	TokenKind   string
	// RenewEvery is the interval known of the library's watchdog; 0: none known.
	RenewEvery time.Duration
}

// Dialect is one family of lock libraries.
type Dialect interface {
	// Name is the dialect's id in JSON, metrics and docs/dialects/<name>.md.
	Name() string
	// Recognise decodes s, or says that it is not of this family.
	Recognise(s Sample) (Decoded, bool)
	// Release returns the one script that removes exactly the incarnation in s
	// and wakes its waiters; an error wrapping locksteward.ErrRefused says why
	// it cannot be done safely.
	Release(s Sample, r Release) (Command, error)
}

// Release is what a forced release needs beside the sample.
type Release struct {
	RequestID  string
	ExpireAt   int64  // PEXPIRETIME that must still hold; NoExpireAt for none
	MetaPrefix string // prefix of the companions, "locksteward:" by default
	// HolderAlive says that the holder is known to live and to renew: its owner,
	// type and count are compared, not what a renewal changes.
	HolderAlive bool
	// Undo is how long the lock is kept aside so that [Undo] finds it; 0 deletes
	// it, and so does a dialect that has no undo ([WhyNoUndo]).
	Undo time.Duration
	// Stand puts a foreign owner of the dialect's own type in the lock's place for
	// so long; 0 frees the lock. [Lift] removes it and wakes who waits.
	Stand time.Duration
}

// Command is one script to run. Args may hold the lock's token: never print or log it.
type Command struct {
	// Script is the Lua text, for EVALSHA with EVAL as the way back.
	Script string
	Keys   []string
	Args   []any
}

// Outcome is the first element of every release script's reply.
type Outcome int64

// What a release script says it did. The second element of the reply is how
// many clients received the wake-up.
const (
	OutcomeReleased    Outcome = 1
	OutcomeAlreadyGone Outcome = 0
	OutcomeChanged     Outcome = -1
	// OutcomeRepeated says that this request id ran before; the third element of
	// the reply is the outcome recorded then.
	OutcomeRepeated Outcome = -2
)
