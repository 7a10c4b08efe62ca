package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/locksteward/locksteward/lock/internal/push"
	"github.com/locksteward/locksteward/lock/record"
)

const (
	// queueBeat is how often a waiter says that it lives; record.WaiterLife is how long it is believed.
	queueBeat = time.Second
	// handoffLeast is what must be left of a turn to begin the work on.
	handoffLeast = 50 * time.Millisecond
	// resignWithin bounds resign where the caller's deadline or Lease.Wait has passed.
	resignWithin = 100 * time.Millisecond
)

// errWait is why an attempt was cut short that Lease.Wait bounded.
var errWait = fmt.Errorf("%w: no answer within Lease.Wait", ErrUnknown)

// wait attempts until the lock is taken, waiting in between for the message that it was handed over. What is pushed
// is a hint: a waiter also tries again at the end of the lease and once a second.
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
	defer c.waiters.Listen(w)()
	if r.channel != "" {
		defer c.push.Await(r.channel, w)()
	}
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
			if taken, ok := c.granted(r, m); ok {
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

// nextAttempt returns when to try again: at the end of the other's lease and then in turn, and as often as the
// waiter must say that it lives. If only few are before it, and might all be dead, as often as they have turns.
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

// turn is how long a lock is handed over for.
func (l Lease) turn() time.Duration { return min(record.Turn, l.TTL) }

// granted reads the message that the lock was handed over, for one turn. When that was, the waiter cannot know: a
// message may be as late as it likes. But it was after the attempt that sent the nonce of the message, so that the
// lease counts from before that attempt. It is not ok if nothing follows from the message, or if too little of the
// turn is left: then an attempt prolongs what it finds to be ours.
func (c *Client) granted(r *request, m record.Message) (v verdict, ok bool) {
	now, turn := c.clock.now(), r.lease.turn()
	left := now.until(r.marked.add(turn - drift(turn)))
	if m.Nonce == "" || m.Nonce != r.nonce || left < max(min(handoffLeast, turn/3), 10*r.trip) {
		return verdict{}, false
	}
	return verdict{taken: true, sent: r.marked, began: now, lease: turn, fence: m.Fence}, true
}

// stale says that a lock handed over now would not last long enough.
func (c *Client) stale(r *request) bool {
	return r.nonce != "" && c.clock.now().mono-r.marked.mono > r.lease.turn()/2
}

// resign takes a waiter out of the queue that gave up with err, before it says so: who says that another has the
// lock must not be handed it afterwards. If it is not known whether it left, it is not known who has the lock either. A waiter that failed otherwise
// leaves in the background.
func (c *Client) resign(ctx context.Context, r *request, err error) error {
	leave := func(ctx context.Context, timeout time.Duration) error {
		err := c.free(ctx, leaveScript, timeout, &r.token, false)
		if _, left := errors.AsType[notOurs](err); left {
			return nil
		}
		return err
	}
	if !errors.Is(err, ErrHeld) {
		c.spawn(func(ctx context.Context) {
			if err := leave(ctx, c.opts.Timeout); err != nil && ctx.Err() == nil {
				c.emit(Event{Kind: EventPushFailed, Key: r.key, Class: r.lease.Class, ID: r.id, Err: fmt.Errorf("leave the queue: %w", err)})
			}
		})
		return err
	}
	timeout := c.opts.Timeout
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || r.lease.Wait > 0 {
		timeout = min(timeout, resignWithin)
	}
	if c.ctx.Err() != nil {
		timeout = min(timeout, time.Second)
	}
	failure := leave(context.WithoutCancel(ctx), timeout)
	if failure == nil {
		return err
	}
	r.stray = true // it may be handed the lock until it is out of the queue
	if cause := why(ctx); ctx.Err() != nil {
		failure = fmt.Errorf("%w: %w", failure, cause)
	}
	return fmt.Errorf("acquire lock %q: leave the queue: %w: %w", r.key, ErrUnknown, failure)
}
