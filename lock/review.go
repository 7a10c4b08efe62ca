package lock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// Bounds of a review: ten thousand locks a second.
const (
	reviewSize = 256
	reviewPace = 25 * time.Millisecond
)

// review looks at all locks that are held, in the background: the connection for messages to the process
// was made anew, so that the server may have been restarted without its data, or another one has taken over. What
// is asked for while one is under way is one more after it.
func (c *Client) review() {
	if c.reviews.Add(1) > 1 {
		return
	}
	c.spawn(func(ctx context.Context) {
		for n := int32(1); ; n = c.reviews.Load() {
			retry.Portions(ctx, c.held(), reviewSize, reviewPace, c.compare, c.push.Listening)
			if c.reviews.CompareAndSwap(n, 0) {
				return
			}
		}
	})
}

// compare reads the values of some locks in one round trip, and ends the holds whose lock is gone or another's.
// Nothing is renewed, so that it serves leases that are not, and failures are not reported: renewals report them.
// Returned are those without an answer.
func (c *Client) compare(ctx context.Context, some []*hold) (silent []*hold) {
	ctx = transport.WithDeadline(ctx, time.Now().Add(c.opts.Timeout))
	pipe := c.server.Client().Pipeline()
	values := make([]*redis.StringCmd, len(some))
	for i, o := range some {
		values[i] = pipe.Get(ctx, o.key)
	}
	// Each command has its own error; the first one is returned as well.
	_, err := pipe.Exec(ctx)
	c.server.CheckSlots(ctx, err)
	for i, o := range some {
		value, err := values[i].Result()
		switch {
		case err == nil && value == o.value:
		case errors.Is(err, redis.Nil):
			o.lose(ReasonGone, nil)
		case err == nil, redis.HasErrorPrefix(err, "WRONGTYPE"):
			o.lose(ReasonTaken, nil)
		default:
			_, failure := classifyError(renewScript.Op, o.key, err)
			if reply, ok := errors.AsType[*ServerError](failure); (!ok || reply.Temporary()) && o.outcome() == nil {
				silent = append(silent, o)
			}
		}
	}
	return silent
}
