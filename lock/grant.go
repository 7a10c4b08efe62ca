package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// A release hands the lock to the head of the queue for one turn, and tells it.
// When that was, the head cannot know: a message may be as late as it likes. But
// it was after the attempt whose mark the message has, since that attempt left
// the mark. So the lease is counted from before that attempt was sent, as that of
// any attempt that takes a lock itself.
const (
	// grantTTL is the shortest lease that is more than what is handed over.
	grantTTL = 2 * record.Turn
	// grantLeast is what must be left of a turn to begin the work on, while the
	// confirmation is under way.
	grantLeast = 50 * time.Millisecond
	// grantFresh is the age of a mark at which the next in the queue sets another.
	grantFresh = record.Turn / 2
)

// grantee is the part of a request that a release may hand the lock to.
type grantee struct {
	// proof opens each mark: nobody can make one up who cannot read the lock's
	// keys. Empty if no release may hand the lock over.
	proof string
	mark  string // of the last attempt
	marks int
	// marked is before the first time that the last attempt was sent.
	marked instant
	// trip is how long the last answer took.
	trip time.Duration
}

// nextMark makes the mark of an attempt that is sent after now.
func (g *grantee) nextMark(now instant) {
	g.marks++
	g.mark = g.proof + strconv.Itoa(g.marks)
	g.marked = now
}

// grantable says whether a release may hand the lock over: where processes are
// told on channels of their own.
func (c *Client) grantable(lease Lease, m mode) bool {
	return m == modeQueue && c.hub != nil && c.server.cluster == nil && lease.TTL >= grantTTL
}

// granted reads the word that the lock was handed over. It is not ok if nothing
// follows from it any more, or if the confirmation might come too late: then an
// attempt tells, which prolongs what it finds to be ours.
func (c *Client) granted(r *request, g record.Grant) (v verdict, ok bool) {
	now := c.clock.now()
	left := now.until(r.marked.add(record.Turn - drift(record.Turn)))
	if g.Mark == "" || g.Mark != r.mark || left < max(grantLeast, 10*r.trip) {
		return verdict{}, false
	}
	return verdict{taken: true, sent: r.marked, began: now, lease: record.Turn, fence: g.Fence}, true
}

// stale says that a lock handed over now would not last long enough.
func (c *Client) stale(r *request) bool {
	return r.mark != "" && c.clock.now().mono-r.marked.mono > grantFresh
}

// resignWithin bounds resign where the caller's deadline has passed.
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
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
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
