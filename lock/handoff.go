package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// A release hands the lock to the head of the queue for one turn, and notifies it.
// When that was, the head cannot know: a message may be as late as it likes. But
// it was after the attempt that sent the nonce of the message. So the lease is
// counted from before that attempt was sent, as that of any attempt that takes a
// lock itself.

// handoffLeast is what must be left of a turn to begin the work on.
const handoffLeast = 50 * time.Millisecond

// handoff is the part of a request that a release may hand the lock to.
type handoff struct {
	// proof opens each nonce: nobody can make one up who cannot read the lock's
	// keys. Empty if no release may hand the lock over.
	proof  string
	nonce  string // of the last attempt
	nonces int
	// marked is before the first time that the last attempt was sent.
	marked instant
	// trip is how long the last answer took.
	trip time.Duration
}

// turn is how long a lock is handed over for.
func (l Lease) turn() time.Duration { return min(record.Turn, l.TTL) }

// granted reads the message that the lock was handed over. It is not ok if
// nothing follows from it any more, or if too little of the turn is left: then an
// attempt tells, which prolongs what it finds to be ours.
func (c *Client) granted(r *request, g record.Grant) (v verdict, ok bool) {
	now, turn := c.clock.now(), r.lease.turn()
	left := now.until(r.marked.add(turn - drift(turn)))
	if g.Nonce == "" || g.Nonce != r.nonce || left < max(min(handoffLeast, turn/3), 10*r.trip) {
		return verdict{}, false
	}
	return verdict{taken: true, sent: r.marked, began: now, lease: turn, fence: g.Fence}, true
}

// stale says that a lock handed over now would not last long enough.
func (c *Client) stale(r *request) bool {
	return r.nonce != "" && c.clock.now().mono-r.marked.mono > r.lease.turn()/2
}

// resignWithin bounds resign where the caller's deadline or Lease.Wait has passed.
const resignWithin = 100 * time.Millisecond

// resign takes a waiter out of the queue that gave up with err, before it says
// so: who says that another has the lock must not be handed it afterwards. If
// that cannot be told, nor can who has it.
func (c *Client) resign(ctx context.Context, r *request, err error) error {
	if !errors.Is(err, ErrHeld) {
		c.leave(r)
		return err
	}
	timeout := c.opts.Timeout
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || r.lease.Wait > 0 {
		timeout = min(timeout, resignWithin)
	}
	if c.ctx.Err() != nil {
		timeout = min(timeout, time.Second)
	}
	handed, failure := c.unlist(context.WithoutCancel(ctx), r, timeout)
	if failure == nil && handed {
		failure = c.free(context.WithoutCancel(ctx), timeout, &r.token, false)
		if _, gone := errors.AsType[notOurs](failure); gone {
			failure = nil
		}
	}
	if failure == nil {
		return err
	}
	c.leave(r)
	r.stray = true // it may be handed the lock until the record's life is over
	if cause := why(ctx); ctx.Err() != nil {
		failure = fmt.Errorf("%w: %w", failure, cause)
	}
	return fmt.Errorf("acquire lock %q: leave the queue: %w: %w", r.key, ErrUnknown, failure)
}
