package lock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// wait attempts until the lock is taken, waiting in between. The subscription
// starts only when somebody else has the lock, and its acknowledgement is a
// wake-up of its own: a release between the attempt and the acknowledgement was
// not heard.
func (c *Client) wait(ctx context.Context, r *request) (verdict, error) {
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
	wake, leave := c.await(record.Companion(c.opts.KeyPrefix, record.KindWake, r.key))
	defer leave()
	t := time.NewTimer(c.look(v.left))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return v, c.heldError(r, v, context.Cause(ctx))
		case <-c.ctx.Done():
			return v, c.heldError(r, v, ErrClosed)
		case <-limit:
			return v, nil
		case <-wake:
		case <-t.C:
		}
		next, err := c.attempt(ctx, r)
		if ctx.Err() != nil && (err != nil || !next.taken) {
			return v, c.heldError(r, v, context.Cause(ctx))
		}
		if err != nil || next.taken {
			return next, err
		}
		v = next
		t.Reset(c.look(v.left))
	}
}

// await subscribes to a wake channel; without a hub nobody ever wakes.
func (c *Client) await(channel string) (wake <-chan struct{}, leave func()) {
	if c.hub == nil {
		return nil, func() {}
	}
	return c.hub.await(channel)
}

// look returns when to look again: at the end of the other's lease, or after the
// poll interval give or take a fifth.
func (c *Client) look(left time.Duration) time.Duration {
	poll := c.opts.PollInterval
	poll += rand.N(poll*2/5+1) - poll/5
	if left < 0 {
		return poll
	}
	// A key is gone one millisecond after its time.
	return min(poll, left+2*time.Millisecond)
}
