package lock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// wait attempts until the lock is taken, waiting in between. The subscription
// starts only when somebody else has the lock, and its acknowledgement is a
// wake-up of its own: a release between the attempt and the acknowledgement was
// not heard.
func (c *Client) wait(ctx context.Context, r *request) (verdict, error) {
	mark := 0
	if c.hub != nil {
		mark = c.hub.heardSoFar(r.wake)
	}
	v, err := c.attempt(ctx, r)
	if err != nil || v.taken {
		return v, err
	}
	var limit <-chan time.Time
	if r.lease.Wait > 0 {
		t := time.NewTimer(r.lease.Wait)
		defer t.Stop()
		limit = t.C
	}
	w := newWaiter(r.id)
	defer c.await(r, w, mark)()
	t := time.NewTimer(c.look(r, v))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return v, c.heldError(r, v, why(ctx))
		case <-c.ctx.Done():
			return v, c.heldError(r, v, ErrClosed)
		case <-limit:
			return v, nil
		case told := <-w.wake:
			if taken, ok := c.granted(r, told.grant); ok {
				return taken, nil
			}
			if told.before > 0 && !(told.before == 1 && c.stale(r)) {
				t.Reset(time.Duration(told.before)*record.Turn + time.Millisecond)
				continue
			}
		case <-t.C:
		}
		if c.remint {
			c.again(r)
		}
		next, err := c.attempt(ctx, r)
		if ctx.Err() != nil && (err != nil || !next.taken) {
			return v, c.heldError(r, v, why(ctx))
		}
		if err != nil || next.taken {
			return next, err
		}
		v = next
		t.Reset(c.look(r, v))
	}
}

// await listens for the lock's release; without a hub nobody ever wakes.
func (c *Client) await(r *request, w *waiter, mark int) (leave func()) {
	if c.hub == nil {
		return func() {}
	}
	topic := c.hub.await(r.wake, w, mark)
	if r.mode != modeQueue {
		return topic
	}
	turns := c.turns.listen(w)
	return func() {
		topic()
		turns()
	}
}

// look returns when to look again: at the end of the other's lease and then in
// turn, and every poll interval give or take a fifth. One in the queue looks as
// often as it must be heard of, and if only few are before it, and might all be
// dead, as often as they have turns.
func (c *Client) look(r *request, v verdict) time.Duration {
	poll := c.opts.PollInterval
	poll += rand.N(poll*2/5+1) - poll/5
	if c.remint {
		// Nobody is woken, and who split the votes must not meet again.
		poll = min(poll, 50*time.Millisecond+rand.N(200*time.Millisecond))
	}
	if r.mode == modeQueue {
		poll = queueBeat
		if v.rank > 1 {
			poll = min(poll, time.Duration(v.rank)*record.Turn)
		}
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

// leave takes a waiter that gave up out of the records, in the background. What
// fails is left to the record's life.
func (c *Client) leave(r *request) {
	c.spawn(func(ctx context.Context) {
		handed, err := c.unlist(ctx, r, c.opts.Timeout)
		if err != nil && ctx.Err() == nil {
			c.emit(Event{Kind: EventPushFailed, Key: r.key, Class: r.lease.Class, ID: r.id, Err: fmt.Errorf("leave the waiters: %w", err)})
		}
		if handed {
			c.clean(&r.token, r.lease, 0, false)
		}
	})
}

// unlist makes one round trip of leave; handed says that a release has given the
// lock to r before.
func (c *Client) unlist(ctx context.Context, r *request, timeout time.Duration) (handed bool, err error) {
	keys := append([]string{r.key, r.keys[3], r.keys[4]}, r.keys[keyGrants:]...)
	reply, err := c.roundTrip(ctx, timeout, leaveScript, keys, []any{r.id, r.wake, c.waking})
	if err != nil {
		_, failure := judge("leave", r.key, err)
		return false, failure
	}
	return reply == int64(2), nil
}
