package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/retry"
)

// Release ends the handle: its context ends with [ErrReleased], and if it is the
// last one of its hold, renewal stops and the lock is deleted if it is still this
// hold's, or handed to who is next in its queue. It does not mind a ctx that has ended
// (its deadline, if that is still to come, counts), takes at most
// Options.Timeout, and may be called again.
//
// nil means released. A [*LostError] ([ErrLost]) means that the lock was not
// this hold's any more; nothing was touched. Any other error means unknown, and
// the library goes on trying in the background until the lock's TTL is over.
func (h *Handle) Release(ctx context.Context) (err error) {
	end := h.hold.c.trace(ctx, "release", h.hold.key, &Lease{Class: h.hold.lease.Class})
	defer func() { end(h.hold, false, err) }()
	h.hold.look()
	switch left := h.hold.part(h, ErrReleased); {
	case left > 0:
		if lost, ok := errors.AsType[*LostError](h.hold.outcome()); ok {
			return fmt.Errorf("release lock: %w", lost)
		}
		return nil
	case left == 0:
		if s := h.hold.session; s != nil {
			s.remove(h.hold)
		}
	}
	return h.hold.release(ctx)
}

// outcome is why the hold is over; nil while it lasts.
func (h *hold) outcome() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// release frees the lock, once nobody has a handle of it.
func (h *hold) release(ctx context.Context) error {
	h.releases.Lock()
	defer h.releases.Unlock()
	if h.freed {
		return h.freedErr
	}
	h.mu.Lock()
	before, others := h.ended, len(h.handles)
	h.mu.Unlock()
	if others > 0 {
		return nil // a second Release of one handle among several
	}
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
	err := h.c.free(detach(ctx), timeout, &h.token, before == nil)
	gone, ours := errors.AsType[notOurs](err)
	switch {
	case err == nil:
		h.freed = true
		h.emit(EventReleased, h.c.took(h.began), nil)
		h.sweep()
		return nil
	case ours:
		h.freed = true
		lost, known := errors.AsType[*LostError](before)
		if !known {
			lost = &LostError{Key: h.key, ID: h.id, Reason: Reason(gone)}
			h.emit(EventLost, h.age(), lost)
		}
		h.freedErr = fmt.Errorf("release lock: %w", lost)
		h.sweep()
		return h.freedErr
	default:
		h.emit(EventReleaseUnknown, h.age(), err)
		h.c.clean(&h.token, h.lease, h.longest, false)
		return err
	}
}

// sweep looks after a copy of the acquire that may still be on its way and take
// the lock again.
func (h *hold) sweep() {
	if h.stray && h.age() < h.c.strayTime() {
		h.c.clean(&h.token, h.lease, 0, true)
	}
}

// releasing is the memory of one free in one piece.
type releasing struct{ args [2]any }

// detach returns a context that does not end with ctx.
func detach(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// freeing returns keys and arguments of the script that frees f.
func (c *Client) freeing(f *token) (keys []string, args []any) {
	m := &releasing{args: [...]any{&f.value, &c.waking}}
	return f.keys, m.args[:]
}

// notOurs is what free returns for a key that is gone or another's.
type notOurs Reason

func (n notOurs) Error() string { return "not this hold's: " + string(n) }

// free compares and deletes. A lost reply is asked for again at once: the
// request is idempotent, and a key that is gone then was deleted by the first
// one if it was certainly ours when that was sent (valid).
func (c *Client) free(ctx context.Context, timeout time.Duration, f *token, valid bool) error {
	keys, args := c.freeing(f)
	giveUp := c.clock.now().add(timeout)
	unknown := false
	for n := 0; ; n++ {
		if n > 0 {
			timeout = c.clock.now().until(giveUp)
		}
		reply, err := c.roundTrip(ctx, max(time.Millisecond, timeout), releaseScript, keys, args)
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
		effect, failure := classifyError("release", f.key, err)
		unknown = unknown || effect == backend.EffectUnknown
		wait := retry.Backoff(n, 10*time.Millisecond, 200*time.Millisecond)
		lied := c.backend == nil && respcheck.Lied(err) // it will hardly say something else
		if effect == backend.EffectNone || lied || c.ctx.Err() != nil || c.clock.now().add(wait).reached(giveUp) {
			if unknown && effect != backend.EffectUnknown {
				return fmt.Errorf("%w: %w", ErrUnknown, failure)
			}
			return failure
		}
		if !retry.Pause(ctx, wait) {
			return failure
		}
	}
}

// clean frees in the background a lock that may be there although nobody holds
// it, until its lease must have ended: after Lease.TTL, or longest if it was
// extended. With stray, a request that takes it may still be on its way, so that
// "not there" is only believed after a while.
func (c *Client) clean(f *token, lease Lease, longest time.Duration, stray bool) {
	own := *f // a request may be replaced
	began := c.clock.now()
	life := max(lease.TTL, longest)
	end := began.add(life + drift(life))
	quiet := began
	if stray {
		quiet = began.add(c.strayTime())
		end = end.later(quiet)
	}
	c.spawn(func(ctx context.Context) {
		var last error
		for n := 0; ; n++ {
			err := c.free(ctx, c.opts.Timeout, &own, false)
			now := c.clock.now()
			_, ours := errors.AsType[notOurs](err)
			if err == nil && !stray || ours && now.reached(quiet) {
				c.emit(Event{Kind: EventCleaned, Key: own.key, Class: lease.Class, ID: own.id, Took: now.mono - began.mono})
				return
			}
			if err != nil && !ours {
				last = err
			}
			if now.reached(end) || !retry.Pause(ctx, retry.Backoff(n, 50*time.Millisecond, time.Second)) {
				c.emit(Event{Kind: EventCleanFailed, Key: own.key, Class: lease.Class, ID: own.id, Took: now.mono - began.mono, Err: last})
				return
			}
		}
	})
}

// strayTime is how long a request that was given up may still be executed: it
// may lie in a server's buffers behind one that was sent later, or, where
// requests share a connection, wait for that to be given up.
func (c *Client) strayTime() time.Duration {
	if c.server != nil {
		return time.Second + c.opts.Timeout
	}
	return time.Second
}
