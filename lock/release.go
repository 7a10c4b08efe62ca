package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// Release ends the hold: renewal stops, the handle's context ends with
// [ErrReleased], and the lock is deleted if it is still this hold's, which wakes
// who waits for it. It does not mind a ctx that has ended (its deadline, if that
// is still to come, counts), takes at most Options.Timeout, and may be called
// again.
//
// nil means released. A [*LostError] ([ErrLost]) means that the lock was not
// this hold's any more; nothing was touched. Any other error means unknown, and
// the library goes on trying in the background until the lock's TTL is over.
func (h *Handle) Release(ctx context.Context) error {
	h.releases.Lock()
	defer h.releases.Unlock()
	if h.freed {
		return h.freedErr
	}
	before := h.Err()
	h.end(ErrReleased)
	if !h.c.enter() {
		return fmt.Errorf("release lock %q: %w: %w", h.key, ErrUnknown, ErrClosed)
	}
	defer h.c.wg.Done()

	timeout := h.c.opts.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			timeout = min(timeout, left)
		}
	}
	err := h.c.free(context.WithoutCancel(ctx), timeout, h.key, h.id, h.value, before == nil)
	gone, ours := errors.AsType[notOurs](err)
	switch {
	case err == nil:
		h.freed = true
		h.c.emit(Event{Kind: EventReleased, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: h.age()})
		if h.stray && h.age() < strayTime {
			// A copy of the acquire may still be on its way and take the lock again.
			h.c.clean(h.key, h.id, h.value, h.lease, 0, true)
		}
		return nil
	case ours:
		h.freed = true
		lost, known := errors.AsType[*LostError](before)
		if !known {
			lost = &LostError{Key: h.key, ID: h.id, Reason: Reason(gone)}
			h.c.emit(Event{Kind: EventLost, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: h.age(), Err: lost})
		}
		h.freedErr = fmt.Errorf("release lock: %w", lost)
		return h.freedErr
	default:
		h.c.emit(Event{Kind: EventReleaseUnknown, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: h.age(), Err: err})
		h.c.clean(h.key, h.id, h.value, h.lease, h.longest, false)
		return err
	}
}

// notOurs is what free returns for a key that is gone or another's.
type notOurs Reason

func (n notOurs) Error() string { return "not this hold's: " + string(n) }

// free compares and deletes. A lost reply is asked for again at once: the
// request is idempotent, and a key that is gone then was deleted by the first
// one if it was certainly ours when that was sent (valid).
func (c *Client) free(ctx context.Context, timeout time.Duration, key, id, value string, valid bool) error {
	channel := record.Companion(c.opts.KeyPrefix, record.KindWake, key)
	publish := "PUBLISH"
	if c.server != nil && c.server.cluster != nil {
		publish = "SPUBLISH"
	}
	keys := []string{key, record.Companion(c.opts.KeyPrefix, record.KindMeta, key)}
	args := []any{value, id, channel, publish, record.WakeMessage}
	giveUp := c.clock.now().add(timeout)
	unknown := false
	for n := 0; ; n++ {
		reply, err := c.roundTrip(ctx, max(time.Millisecond, c.clock.now().until(giveUp)), releaseScript, keys, args)
		switch {
		case err == nil && reply == int64(1):
			return nil
		case err == nil && unknown && valid:
			return nil
		case err == nil && reply == int64(0):
			return notOurs(ReasonGone)
		case err == nil:
			return notOurs(ReasonTaken)
		}
		effect, failure := judge("release", key, err)
		unknown = unknown || effect == effectUnknown
		wait := backoff(n, 10*time.Millisecond, 200*time.Millisecond)
		if effect == effectNone || c.ctx.Err() != nil || c.clock.now().add(wait).reached(giveUp) {
			if unknown && effect != effectUnknown {
				return fmt.Errorf("%w: %w", ErrUnknown, failure)
			}
			return failure
		}
		if !pause(ctx, wait) {
			return failure
		}
	}
}

// clean frees in the background a lock that may be there although nobody holds
// it, until its lease must have ended: after Lease.TTL, or longest if it was
// extended. With stray, a request that takes it may still be on its way, so that
// "not there" is only believed after a while.
func (c *Client) clean(key, id, value string, lease Lease, longest time.Duration, stray bool) {
	began := c.clock.now()
	life := max(lease.TTL, longest)
	end := began.add(life + drift(life))
	quiet := began
	if stray {
		quiet = began.add(strayTime)
		end = end.later(quiet)
	}
	c.spawn(func(ctx context.Context) {
		var last error
		for n := 0; ; n++ {
			err := c.free(ctx, c.opts.Timeout, key, id, value, false)
			now := c.clock.now()
			_, ours := errors.AsType[notOurs](err)
			if err == nil && !stray || ours && now.reached(quiet) {
				c.emit(Event{Kind: EventCleaned, Key: key, Class: lease.Class, ID: id, Took: now.mono - began.mono})
				return
			}
			if err != nil && !ours {
				last = err
			}
			if now.reached(end) || !pause(ctx, backoff(n, 50*time.Millisecond, time.Second)) {
				c.emit(Event{Kind: EventCleanFailed, Key: key, Class: lease.Class, ID: id, Took: now.mono - began.mono, Err: last})
				return
			}
		}
	})
}

// strayTime is how long a request whose connection was given up may lie in a
// server's buffers behind one that was sent later.
const strayTime = time.Second
