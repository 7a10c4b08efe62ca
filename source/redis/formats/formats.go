// Package formats knows how lock libraries store their locks in Redis: how to
// recognise and decode them, how to release one safely and wake its waiters, and
// what rules and ACLs need to know of each library. One [Format] literal per
// library, in the file of its language or in one of its own (go_redislock.go).
// The package does no I/O: it is given values and returns commands.
//
// All functions are safe for concurrent use. Foreign bytes never make them
// panic. A value that fits no format is "unknown", and where the evidence is not
// conclusive the lock is not releasable.
package formats

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// Sample is what was read of one key, bounded.
type Sample struct {
	Key  string
	Type string // as TYPE returns it
	TTL  time.Duration
	// Size is bytes of a string, members of any other type.
	Size int64
	// TooLarge says that Value, Fields or Members is incomplete or absent.
	TooLarge bool
	Value    []byte            // string: at most the first 4,096 bytes
	Fields   map[string]string // hash: all fields
	Members  []Member          // zset in its order, list in its order, set sorted: all of them
	// Auxiliary is what was read of the keys that [AuxiliaryReads] named, by key.
	Auxiliary map[string]Auxiliary
	// Meta is the decoded lock/record metadata of the key, valid or not for this
	// value; nil if there is none.
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

// Decoded is what a format reads from a sample.
type Decoded struct {
	Format     string // the format's name
	Confidence locksteward.Confidence
	Identity   locksteward.Identity
	Holder     locksteward.Holder
	// Acquired is when the lock was acquired, as the value states it by its
	// writer's clock; zero if it does not. Asked says that it is when the holder
	// asked for the lock, for which it may have waited since. Mode is "read" or
	// "write" of locks that have both.
	Acquired time.Time
	Asked    bool
	Mode     string
	Count    int64 // re-entrancy; 1 if the format has none
	Waiters  int   // negative: not known
	Fence    int64
	Claim    *locksteward.Claim
	// SharedToken and TokenKind: see locksteward.Observation.
	SharedToken bool
	TokenKind   string
	// RenewEvery is the known interval of the library's watchdog; 0: none known.
	RenewEvery time.Duration
}

// Format is how one lock library stores its locks, and the facts about the
// library that releases, rules and ACLs need. A literal names only what differs
// from the usual: one string, deleted after a comparison, whose waiters poll.
type Format struct {
	// Name is the format's id in JSON and metrics. It has a page
	// docs/libraries/<Name>.md and fixtures in testdata/<Name>.
	Name string

	// Type is the one Redis type of its locks; "" for several.
	Type string
	// matches reports whether a key of this name may be a lock of the format; nil if
	// its locks have any name. Formats with matches are tried first.
	matches func(key string) bool
	// needsTTL: the library always sets a TTL, so a key without one is not its lock.
	needsTTL bool
	// bare: the value is stored as the library made it. No client serialises it.
	bare bool
	// decode decodes s, or reports false if s is not of this format. Recognise fills
	// in Format and RenewEvery.
	decode func(s Sample) (Decoded, bool)
	// names are those of its locks that no word such as "lock" gives away: see
	// [MayBeLock]. digestAfter is for names that end in this text and a SHA-1, with
	// four digits after it or not, whatever their prefix.
	names       []namePattern
	digestAfter string

	// RenewEvery is the default interval of the library's watchdog; 0: none known.
	RenewEvery time.Duration
	// Facts are what rules need to know of the library.
	Facts locksteward.LibraryFacts

	// release builds the command for a sample that was recognised, or for an empty
	// one whose placeholder is lifted. nil if no lock of the format can be released
	// safely; Never then says why.
	release func(s Sample, p plan) (Command, error)
	Never   string
	// NeedsPerson is why each release needs a person's decision, whatever rules and
	// policy say; "" if a proof may decide it. See [NeedsPerson].
	NeedsPerson string
	// NoUndo is why a release cannot be undone by putting the key back.
	NoUndo string
	// placeholder builds what holds a lock's place (placeholder.go); nil for one
	// string. NoPlaceholder is why nothing can. waitersSleep: waiters sleep until
	// the expiry that they last read.
	placeholder   func(owner string) placeholder
	NoPlaceholder string
	waitersSleep  bool

	// reads names the auxiliary keys to be read with s; nil for none.
	reads func(s Sample) []AuxiliaryRead
	// auxiliaryKey returns the lock that an auxiliary key of the library belongs to
	// (queue, signal, counter, latch); "" for one that belongs to no single lock. nil
	// if the library has none. deadlines: see [Deadlines].
	auxiliaryKey func(key string) (lock string, ok bool)
	deadlines    func(key string) string
	// stableFields returns the fields of a hash that a renewal does not change; nil
	// if it changes none.
	stableFields func(s Sample) map[string]string

	// Grants returns the key and channel patterns that a release of locks that
	// match glob needs besides the lock itself; nil if none.
	Grants func(glob string) (keys, channels []string)
	// ScannerReads are the patterns of the auxiliary keys that the scanner reads
	// with the locks.
	ScannerReads []string
}

// table is in the order in which formats are tried: our own, then those that
// know the names of their keys, then those that know a lock by its value alone.
var table = func() []*Format {
	list := []*Format{&lockstewardFormat}
	libraries := slices.Concat(javaFormats, dotnetFormats, goFormats, nodeFormats, pythonFormats, rubyFormats, phpFormats)
	for _, named := range []bool{true, false} {
		for _, f := range libraries {
			if (f.matches != nil) == named {
				list = append(list, f)
			}
		}
	}
	return append(list, &tokenFormat, &unknownFormat)
}()

// with returns the formats that has selects, in the order of the table.
func with(has func(f *Format) bool) (list []*Format) {
	for _, f := range table {
		if has(f) {
			list = append(list, f)
		}
	}
	return list
}

// All returns the formats in the order in which [Recognise] tries them; the
// last one accepts everything.
func All() []*Format { return slices.Clone(table) }

var byName = func() map[string]*Format {
	index := map[string]*Format{}
	for _, f := range table {
		index[f.Name] = f
	}
	return index
}()

// Get returns the format of that name.
func Get(name string) (*Format, bool) {
	f, ok := byName[name]
	return f, ok
}

// Facts returns what rules need to know of the library called name; zero for one
// that is not known.
func Facts(name string) locksteward.LibraryFacts {
	if f, ok := Get(name); ok {
		return f.Facts
	}
	return locksteward.LibraryFacts{}
}

// Release is what a forced release needs besides the sample.
type Release struct {
	RequestID  string
	ExpireAt   int64  // PEXPIRETIME that must still hold; NoExpireAt for none
	MetaPrefix string // prefix of lock/record's companion keys, "locksteward:" by default
	// HolderAlive says that the holder is known to live and to renew: its owner,
	// type and count are compared, not what a renewal changes.
	HolderAlive bool
	// Undo is how long the lock is kept aside so that [Undo] finds it; 0 deletes
	// it, and so does a format that has no undo ([WhyNoUndo]).
	Undo time.Duration
	// Placeholder is how long a placeholder holds the lock's place; 0 frees the
	// lock. [Lift] removes the placeholder and wakes the waiters.
	Placeholder time.Duration
}

// Command is one script to run. Args may hold the lock's token: never print or log it.
type Command struct {
	// Script is the Lua text, for EVALSHA with EVAL as the fallback.
	Script string
	Keys   []string
	Args   []any
}

// Outcome is the first element of every release script's reply.
type Outcome int64

// Outcomes of a release script. The second element of the reply is how many
// clients received the wake-up.
const (
	OutcomeReleased    Outcome = 1
	OutcomeAlreadyGone Outcome = 0
	OutcomeChanged     Outcome = -1
	// OutcomeRepeated: this request id ran before. The third element of the reply
	// is the outcome recorded then.
	OutcomeRepeated Outcome = -2
)
