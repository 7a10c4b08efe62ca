package lock

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// beat writes the process's heartbeat until ctx ends.
func (c *Client) beat(ctx context.Context) {
	key := record.InstanceKey(c.opts.KeyPrefix, c.instance)
	started := "0" // the server says when that was, by its own clock
	for n := 0; ; {
		me := record.Instance{
			ID: c.instance, App: c.opts.App, Host: c.opts.Host, PID: c.pid, Slot: c.opts.Slot,
			Counts: c.counts.copy(),
		}
		args := append([]any{record.HeartbeatTTL.Milliseconds(), started}, me.Fields()...)
		sent := c.clock.now()
		reply, err := c.roundTrip(ctx, min(c.opts.Timeout, record.Heartbeat), beatScript, []string{key}, args)
		next := record.Heartbeat
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			_, failure := classifyError("heartbeat", key, err)
			c.emit(Event{Kind: EventBeatFailed, Err: failure})
			next = retry.Backoff(n, 200*time.Millisecond, record.Heartbeat)
			n++
		} else {
			n = 0
			c.beaten(sent)
			if s := transport.Text(reply); s != "" {
				started = s
			}
		}
		if !retry.Pause(ctx, next) {
			return
		}
	}
}

// beaten notes when the heartbeat runs out that was sent at sent, for those who
// end with it. A hold's own timer may be later than that: a hold is looked at
// when the heartbeat runs out.
func (c *Client) beaten(sent instant) {
	if !c.opts.EndWithHeartbeat {
		return
	}
	until := sent.add(record.HeartbeatTTL - drift(record.HeartbeatTTL))
	c.beatUntil.Store(&until)
	c.beatTimer.Reset(max(0, c.clock.now().until(until)))
}

// lookAll ends the holds that are over by the clock.
func (c *Client) lookAll() {
	for _, h := range c.held() {
		h.look()
	}
}

// farewell deletes the heartbeat of a process that holds no lock, so that
// nobody waits for it to come back. What goes wrong is left to the key's TTL.
func (c *Client) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), min(c.opts.Timeout, time.Second))
	defer cancel()
	key := record.InstanceKey(c.opts.KeyPrefix, c.instance)
	if err := c.forget(ctx, key); err != nil {
		c.emit(Event{Kind: EventBeatFailed, Err: err})
	}
}

// forget deletes a key of the process.
func (c *Client) forget(ctx context.Context, key string) error {
	if c.backend != nil {
		return c.backend.Delete(ctx, key)
	}
	return c.server.Delete(ctx, key)
}
