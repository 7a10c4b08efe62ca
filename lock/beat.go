package lock

import (
	"context"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// beat writes the process's heartbeat until ctx ends.
func (c *Client) beat(ctx context.Context) {
	key := record.InstanceKey(c.opts.KeyPrefix, c.instance)
	me := record.Instance{ID: c.instance, App: c.opts.App, Host: c.opts.Host, PID: c.pid, Slot: c.opts.Slot}
	started := "0" // the server says when that was, by its own clock
	for n := 0; ; {
		args := append([]any{record.HeartbeatTTL.Milliseconds(), started}, me.Fields()...)
		reply, err := c.roundTrip(ctx, min(c.opts.Timeout, record.Heartbeat), beatScript, []string{key}, args)
		next := record.Heartbeat
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			_, failure := judge("heartbeat", key, err)
			c.emit(Event{Kind: EventBeatFailed, Err: failure})
			next = backoff(n, 200*time.Millisecond, record.Heartbeat)
			n++
		} else {
			n = 0
			if s := text(reply); s != "" {
				started = s
			}
		}
		if !pause(ctx, next) {
			return
		}
	}
}

// farewell deletes the heartbeat of a process that holds no lock, so that
// nobody waits for it to come back. What goes wrong is left to the key's TTL.
func (c *Client) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), min(c.opts.Timeout, time.Second))
	defer cancel()
	key := record.InstanceKey(c.opts.KeyPrefix, c.instance)
	if err := c.server.rdb.Del(ctx, key).Err(); err != nil {
		c.emit(Event{Kind: EventBeatFailed, Err: err})
	}
}
