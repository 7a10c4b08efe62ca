package alert

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// Change is one transition of a finding that receivers are to be told of. Whoever
// keeps the finding writes it with that, in one transaction: [Sender.Changes].
type Change struct {
	EventID string
	// Seq grows over all changes, restarts included.
	Seq    uint64
	At     time.Time
	Survey bool // found by the first sweep of its target
	// surveying is for how long that sweep has been under way, negative once it has ended.
	surveying time.Duration
	Finding   locksteward.Finding
	// LeaseEnds is when the lease of the finding's lock ends unless it is renewed, by the
	// clock of At; zero if that is not known. The outbox does not keep it.
	LeaseEnds time.Time
	To        []Address
}

// urgentFor says that the lease of the lock ends so soon that the change must not wait
// so long for others: half of what is left would be gone.
func (c Change) urgentFor(wait time.Duration) bool {
	left := c.LeaseEnds.Sub(c.At)
	return c.Finding.Status == locksteward.StatusFiring && left > 0 && left <= 2*wait
}

// Address is one receiver's group, in which a change waits until it is told.
type Address struct {
	Receiver string
	Group    string
	// Wait is how long the first change of a quiet group waits for others, Interval
	// the least time between two messages of the group.
	Wait, Interval time.Duration
	// Urgency is that of the message that tells the change.
	Urgency int
	// Told says that a message of its own tells the change: it does not wait, but
	// that the receiver knows it is kept.
	Told bool
}

// Due is a group that is due, with what waits in it.
type Due struct {
	Group  string
	LastAt time.Time // its last message; zero: none
	Now    time.Time
	// Waiting is what is to be told, in its order; More says that more waits.
	Waiting []Waiting
	More    bool
	// Told is how many findings of it the receiver knows to fire. Standing are these,
	// or some of them; only when nothing waits.
	Told     int
	Standing []Change
}

// Waiting is one change that waits to be told to a receiver.
type Waiting struct {
	Change
	// Handle names it to the outbox.
	Handle int64
	// Known says that the receiver knows the finding to fire.
	Known bool
	// Held is why it was held back before; "" if it was not.
	Held string
}

// Flushed is what becomes of a group that was due.
type Flushed struct {
	Group string
	// Told are told now; Dropped are neither told nor waiting any more; Held go on
	// waiting, and why.
	Told, Dropped []int64
	Held          map[int64]string
	// Sent says that there is a message.
	Sent bool
	// Next is when the group is due again though nothing new is written; < 0: not.
	Next time.Duration
}

// Groups is the part of the outbox in which changes wait until they are told
// together.
type Groups interface {
	// NextGroup is how long it is until a group of a receiver is due; false if none
	// will be by itself. Groups that are no more urgent than a message that waits with
	// the ordering behind do not count; "": all count.
	NextGroup(ctx context.Context, receiver, behind string) (time.Duration, bool, error)
	// Flush gives compose the groups of a receiver that are due and that NextGroup counts,
	// the most urgent first, at most so many with at most so many changes in all, and
	// writes in one transaction what it makes of them. It returns how many there were.
	// compose must not use the outbox; a group that it returns nothing for stays due.
	Flush(ctx context.Context, receiver, behind string, groups, changes int, compose func([]Due) ([]Flushed, []Message)) (int, error)
	// Waits says whether a change waits for a receiver that is not held back.
	Waits(ctx context.Context, receiver string) (bool, error)
	// Standing are changes of which a receiver knows that they fire, in the order of
	// fingerprints after the given one.
	Standing(ctx context.Context, receiver, after string, limit int) ([]Change, error)
	// Drop forgets what waits for a receiver that is gone, and what it knows, and
	// returns how much waited.
	Drop(ctx context.Context, receiver string) (int64, error)
}
