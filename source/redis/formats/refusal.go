package formats

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// Refusal is the reason why a lock cannot be released safely. It wraps
// locksteward.ErrRefused.
type Refusal struct {
	Key    string // exact bytes
	Format string // the format's name
	// Why is half a sentence for people.
	Why string
}

// Error returns the reason, with the page that has the steps by hand.
func (r *Refusal) Error() string {
	return fmt.Sprintf("release %q: %s: %s; see docs/libraries/%s.md for the way by hand",
		locksteward.DisplayKey(r.Key), r.Why, locksteward.ErrRefused, r.Format)
}

// Unwrap returns locksteward.ErrRefused.
func (r *Refusal) Unwrap() error { return locksteward.ErrRefused }

// WhyNever returns why no lock of the format called name can be released safely;
// "" where one can. A lock of a releasable format may still be refused as it
// stands: [Format.Release] decides.
func WhyNever(name string) string {
	f, ok := Get(name)
	if !ok {
		return "this version does not know the library"
	}
	return f.Never
}

// NeedsPerson returns why a lock of the format called name is never released, nor
// its release requested, without a person who looked at that very lock; "" where
// rules may decide it. A format that is not known needs one.
func NeedsPerson(name string) string {
	f, ok := Get(name)
	if !ok {
		return "nobody knows how such a lock is kept"
	}
	return f.NeedsPerson
}

// Reasons why a release cannot be undone or a lock's place not be held that several
// formats share.
const (
	// noUndoPermit: the release gave a permit back.
	noUndoPermit = "its permit went back to those who wait, so that it would be there twice"

	noPlaceholderBlocks = "those who wait block without limit, so that they would sleep on if nobody lived to wake them"
	noPlaceholderTime   = "its value is read as a time, and a foreign owner has none"
	noPlaceholderShared = "several hold it at once, and one more of them keeps nobody out"
	noPlaceholderParts  = "it is one part of several that the library keeps together"
	noPlaceholderTask   = "its value is the id of a task, which callers are given"
)

// refuseSeveral refuses to release a key that several hold at once: removing it
// would end all holds, and which of them is dead is not known.
func (p plan) refuseSeveral(held int, what string) error {
	return p.refuse("%d %s are held in this one key, and removing it would take all of them", held, what)
}
