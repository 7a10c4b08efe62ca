package lockcheck

import (
	"cmp"
	"fmt"
	"slices"
)

// Outcome is what a client knows of the end of an acquire, a release or a write.
type Outcome string

// Outcomes. An empty one is that of a client that died before it recorded one.
const (
	Held     Outcome = "held"     // acquire: another has it
	Queued   Outcome = "queued"   // acquire: it is free, and others are before
	Refused  Outcome = "refused"  // acquire: an error that says nothing of the lock
	Released Outcome = "released" // release: the lock was this hold's and is free
	Lost     Outcome = "lost"     // release: the lock was not this hold's any more
	Unknown  Outcome = "unknown"  // acquire, release, write: no reply
	Accepted Outcome = "accepted" // write
	Rejected Outcome = "rejected" // write: the store has seen a larger fence
)

// Hold is one acquisition that succeeded. Times are those of [Now]; 0 is
// "never" or "not known".
type Hold struct {
	Lock   string `json:"lock"`
	ID     string `json:"id"`
	Client string `json:"client"`
	Fence  int64  `json:"fence"`
	// Invoked and Acquired are when the acquire was called and had returned.
	Invoked  int64 `json:"invoked"`
	Acquired int64 `json:"acquired"`
	// Queued says that the acquire waited in the queue: see [Attempt.Queued].
	Queued bool `json:"queued,omitempty"`
	// Until is the end of the lease by the word of the library, as of the last
	// time it was asked; renewals move it.
	Until int64 `json:"until"`
	// LossSeen is when the holder found the hold over without a release.
	LossSeen int64 `json:"loss_seen,omitempty"`
	// ReleaseSent and ReleaseDone are when release was called and had returned.
	ReleaseSent int64   `json:"release_sent,omitempty"`
	ReleaseDone int64   `json:"release_done,omitempty"`
	Outcome     Outcome `json:"outcome,omitempty"` // Released, Lost, Unknown
}

// End is when the holder stopped taking the lock for its own.
func (h Hold) End() int64 {
	end := h.Until
	for _, t := range []int64{h.LossSeen, h.ReleaseSent} {
		if t != 0 {
			end = min(end, t)
		}
	}
	return end
}

func (h Hold) String() string {
	return fmt.Sprintf("hold %s of %q by %s, fence %d, from %d to %d", h.ID, h.Lock, h.Client, h.Fence, h.Acquired, h.End())
}

// Attempt is one acquire that failed.
type Attempt struct {
	Lock     string  `json:"lock"`
	ID       string  `json:"id,omitempty"` // of the acquisition it would have been; empty if not known
	Client   string  `json:"client"`
	Invoked  int64   `json:"invoked"`
	Returned int64   `json:"returned"`
	Outcome  Outcome `json:"outcome"` // Held, Queued, Refused, Unknown
	// Holder is the acquisition id of who had the lock; empty if not known.
	Holder string `json:"holder,omitempty"`
	Err    string `json:"err,omitempty"`
	// Queued says that the acquire waited in the queue. Until it returned it may have
	// been handed the lock, and have lost it again, without its client's knowing.
	Queued bool `json:"queued,omitempty"`
}

// Write is one write to a store that compares fences, or to one that does not.
type Write struct {
	Lock    string  `json:"lock"`
	Hold    string  `json:"hold"`
	Client  string  `json:"client"`
	Fence   int64   `json:"fence"`
	Called  int64   `json:"called"`
	Done    int64   `json:"done"`
	Outcome Outcome `json:"outcome"` // Accepted, Rejected, Unknown
	// Seq numbers what the store accepted for this lock, in its own order.
	Seq int64 `json:"seq,omitempty"`
	// Stored is the fence for which the store rejected the write.
	Stored int64 `json:"stored,omitempty"`
}

func (w Write) String() string {
	return fmt.Sprintf("write %d of hold %s by %s with fence %d", w.Seq, w.Hold, w.Client, w.Fence)
}

// History is all that was seen of some locks.
type History struct {
	Holds    []Hold    `json:"holds"`
	Attempts []Attempt `json:"attempts"`
	Fenced   []Write   `json:"fenced"`
	// Unfenced are the same writes to a store that takes all of them: the control.
	Unfenced []Write `json:"unfenced"`
	// Killed says that a process died with acquires of which nothing is known.
	Killed bool `json:"killed,omitempty"`
}

// Violation is one thing that must not be.
type Violation struct {
	Check string `json:"check"`
	Lock  string `json:"lock"`
	What  string `json:"what"`
}

func (v Violation) String() string { return fmt.Sprintf("%s: lock %q: %s", v.Check, v.Lock, v.What) }

// byLock sorts a copy of list by less within each lock, and calls f with the
// part of each lock, in the order of their names.
func byLock[T any](list []T, lock func(T) string, order func(a, b T) int, f func(lock string, part []T)) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b T) int {
		return cmp.Or(cmp.Compare(lock(a), lock(b)), order(a, b))
	})
	for len(sorted) > 0 {
		name := lock(sorted[0])
		n := 1
		for n < len(sorted) && lock(sorted[n]) == name {
			n++
		}
		f(name, sorted[:n])
		sorted = sorted[n:]
	}
}
