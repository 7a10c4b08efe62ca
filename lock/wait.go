package lock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/locksteward/locksteward/lock/internal/push"
	"github.com/locksteward/locksteward/lock/record"
)

// errWait is why an attempt was cut short that Lease.Wait bounded.
var errWait = fmt.Errorf("%w: no answer within Lease.Wait", ErrUnknown)

// wait attempts until the lock is taken, waiting in between for the message that
// it was handed over. What is pushed is a hint: a waiter also tries again at the
// end of the lease and once a second.
func (c *Client) wait(ctx context.Context, r *request) (verdict, error) {
	bounded := ctx
	if r.lease.Wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeoutCause(ctx, r.lease.Wait, errWait)
		defer cancel()
	}
	v, err := c.attempt(bounded, r)
	if err != nil || v.taken {
		return v, err
	}
	w := push.NewWaiter(r.id)
	defer c.await(r, w)()
	t := time.NewTimer(c.nextAttempt(r, v))
	defer t.Stop()
	for {
		select {
		case <-bounded.Done():
			if ctx.Err() != nil {
				return v, c.heldError(r, v, why(ctx))
			}
			return v, nil
		case <-c.ctx.Done():
			return v, c.heldError(r, v, ErrClosed)
		case m := <-w.C:
			if taken, ok := c.granted(r, m.Grant); ok {
				return taken, nil
			}
			if m.Before > 0 && !(m.Before == 1 && c.stale(r)) {
				t.Reset(time.Duration(m.Before)*record.Turn + time.Millisecond)
				continue
			}
		case <-t.C:
		}
		if c.backend != nil {
			c.again(r)
		}
		next, err := c.attempt(bounded, r)
		if bounded.Err() != nil && (err != nil || !next.taken) {
			continue // ctx or Lease.Wait has ended
		}
		if err != nil || next.taken {
			return next, err
		}
		v = next
		t.Reset(c.nextAttempt(r, v))
	}
}

// await makes w receive the messages to the waiter of r.
func (c *Client) await(r *request, w *push.Waiter) (leave func()) {
	forget := c.waiters.Listen(w)
	if r.channel == "" {
		return forget
	}
	unsubscribe := c.push.Await(r.channel, w)
	return func() {
		unsubscribe()
		forget()
	}
}

// nextAttempt returns when to try again: at the end of the other's lease and then
// in turn, and as often as the waiter must say that it lives. If only few are
// before it, and might all be dead, as often as they have turns.
func (c *Client) nextAttempt(r *request, v verdict) time.Duration {
	poll := queueBeat
	switch {
	case c.backend != nil:
		// Nobody is notified, and who split the votes must not meet again.
		poll = 50*time.Millisecond + rand.N(200*time.Millisecond)
	case v.rank > 1:
		poll = min(poll, time.Duration(v.rank)*record.Turn)
	}
	switch {
	case v.queued:
		return min(poll, v.left+time.Millisecond)
	case v.left < 0:
		return poll
	default:
		// A key is gone one millisecond after its time.
		return min(poll, v.left+2*time.Millisecond+time.Duration(max(0, v.rank))*record.Turn)
	}
}

// leave takes a waiter that gave up out of the queue, in the background. What
// fails is left to the life of its record.
func (c *Client) leave(r *request) {
	c.spawn(func(ctx context.Context) {
		handed, err := c.unlist(ctx, r, c.opts.Timeout)
		if err != nil && ctx.Err() == nil {
			c.emit(Event{Kind: EventPushFailed, Key: r.key, Class: r.lease.Class, ID: r.id, Err: fmt.Errorf("leave the queue: %w", err)})
		}
		if handed {
			c.clean(&r.token, r.lease, 0, false)
		}
	})
}

// unlist makes one round trip of leave; handed says that a release has given the
// lock to r before.
func (c *Client) unlist(ctx context.Context, r *request, timeout time.Duration) (handed bool, err error) {
	keys := []string{r.key, r.keys[3], r.keys[4]}
	reply, err := c.roundTrip(ctx, timeout, leaveScript, keys, []any{r.id, c.waking})
	if err != nil {
		_, failure := classifyError("leave", r.key, err)
		return false, failure
	}
	return reply == int64(2), nil
}
