package lock

import (
	"context"
	"os"
	"time"

	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// beat writes the process's heartbeat until ctx ends.
func (c *Client) beat(ctx context.Context) {
	key := record.InstanceKey(c.opts.KeyPrefix, c.instance)
	started := "0" // the server says when that was, by its own clock
	for n := 0; ; n++ {
		me := record.Instance{
			ID: c.instance, App: c.opts.App, Host: c.opts.Host, PID: os.Getpid(), Slot: c.opts.Slot,
			Counts: c.counts.copy(),
		}
		args := append([]any{record.HeartbeatTTL.Milliseconds(), started}, me.Fields()...)
		sent := c.clock.now()
		reply, err := c.roundTrip(ctx, min(c.opts.Timeout, record.Heartbeat), beatScript, []string{key}, args)
		next := record.Heartbeat
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			_, failure := classifyError("heartbeat", key, err)
			c.emit(Event{Kind: EventBeatFailed, Err: failure})
			next = retry.Backoff(n, 200*time.Millisecond, record.Heartbeat)
		default:
			n = -1
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
	if err := c.db.Delete(ctx, record.InstanceKey(c.opts.KeyPrefix, c.instance)); err != nil {
		c.emit(Event{Kind: EventBeatFailed, Err: err})
	}
}
