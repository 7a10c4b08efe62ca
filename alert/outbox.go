package alert

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// Outbox keeps notifications until they are delivered. All times are of its clock.
type Outbox interface {
	EventGroups
	// Claim takes up to limit due notifications of a receiver for ttl: nobody else gets
	// them until then. Of each Ordering it returns the first that is not done: those
	// with the most urgent in their Ordering first, then the oldest.
	Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]locksteward.Notification, error)
	// NextDue is the time until a notification can be claimed; false if none waits.
	NextDue(ctx context.Context, receiver string) (time.Duration, bool, error)
	// Delivered, Retry and DeadLetter record the outcome of a claimed notification: it
	// arrived, it is sent again after a time, it is given up. All return
	// [locksteward.ErrClaimLost].
	Delivered(ctx context.Context, n locksteward.Notification) error
	Retry(ctx context.Context, n locksteward.Notification, why error, after time.Duration) error
	DeadLetter(ctx context.Context, n locksteward.Notification, why error) error
	// RetryNow makes the unclaimed notifications of a receiver due at once.
	RetryNow(ctx context.Context, receiver string) error
	// DeadLetterAll gives up the unclaimed notifications of a receiver that are at least
	// as old, and returns their number.
	DeadLetterAll(ctx context.Context, receiver string, age time.Duration, why error) (int64, error)
	// Backlogs is the backlog of each receiver that has one.
	Backlogs(ctx context.Context) ([]locksteward.Backlog, error)
}

// EventGroups is the part of the outbox in which events wait until notifications carry
// them.
type EventGroups interface {
	// NextGroup is the time until a group of a receiver is due; false if none will be by
	// itself. Groups that are no more urgent than a waiting notification with the
	// ordering behind do not count; "": all count.
	NextGroup(ctx context.Context, receiver, behind string) (time.Duration, bool, error)
	// Flush calls compose with the due groups of a receiver that NextGroup counts, the
	// most urgent first, bounded by numbers of groups and events, and writes what it
	// returns in one transaction. It returns the number of groups. compose must not use
	// the outbox; a group that it returns nothing for stays due.
	Flush(ctx context.Context, receiver, behind string, groups, events int, compose func([]locksteward.DueGroup) ([]locksteward.FlushedGroup, []locksteward.Notification)) (int, error)
	// HasPending reports whether an event waits for a receiver that is not held back.
	HasPending(ctx context.Context, receiver string) (bool, error)
	// Firing returns the last events of findings that a receiver knows to fire, in the
	// order of fingerprints after the given one.
	Firing(ctx context.Context, receiver, after string, limit int) ([]locksteward.FindingEvent, error)
	// DropReceiver forgets the events and the delivery state of a receiver that was
	// removed, and returns how many events waited.
	DropReceiver(ctx context.Context, receiver string) (int64, error)
}
