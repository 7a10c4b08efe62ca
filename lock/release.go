package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// Release ends the handle: its context ends with [ErrReleased], and if it is the last one of its hold, renewal
// stops and the lock is deleted if it is still this hold's, or handed to who is next in its queue. It does not mind
// a ctx that has ended (its deadline, if that is still to come, counts), takes at most Options.Timeout, and may be
// called again.
//
// nil means released. A [*LostError] ([ErrLost]) means that the lock was not this hold's any more; nothing was
// touched. Any other error means unknown, and the library goes on trying in the background until the lock's TTL is
// over.
func (h *Handle) Release(ctx context.Context) (err error) {
	end := h.hold.c.trace(ctx, "release", h.hold.key, &Lease{Class: h.hold.lease.Class})
	defer func() { end(h, false, err) }()
	h.hold.look()
	switch left := h.hold.part(h, ErrReleased); {
	case left > 0:
		if lost, ok := errors.AsType[*LostError](h.hold.outcome()); ok {
			return fmt.Errorf("release lock: %w", lost)
		}
		return nil
	case left == 0:
		h.hold.session.remove(h.hold)
	}
	return h.hold.release(ctx)
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
	err := h.c.free(detach(ctx), releaseScript, timeout, &h.token, before == nil)
	gone, ours := errors.AsType[notOurs](err)
	switch {
	case err == nil:
		h.freed = true
		h.emit(EventReleased, h.c.took(h.began), nil)
	case ours:
		h.freed = true
		lost, known := errors.AsType[*LostError](before)
		if !known {
			lost = &LostError{Key: h.key, ID: h.id, Reason: Reason(gone)}
			h.emit(EventLost, h.age(), lost)
		}
		h.freedErr = fmt.Errorf("release lock: %w", lost)
	default:
		h.emit(EventReleaseUnknown, h.age(), err)
		h.c.clean(&h.token, h.lease, h.longest, false)
		return err
	}
	if h.stray && h.age() < h.c.strayTime() { // a copy of the acquire may take the lock again
		h.c.clean(&h.token, h.lease, 0, true)
	}
	return h.freedErr
}

// detach returns a context that does not end with ctx.
func detach(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// notOurs is what free returns for a key that is gone or another's.
type notOurs Reason

func (n notOurs) Error() string { return "not this hold's: " + string(n) }

// free has the server compare and delete, or hand the lock to the next waiter, and takes the waiter that f may be
// out of the queue. A lost reply is asked for again at once: the request is idempotent, and a key that is gone then
// was deleted by the first one if it was certainly ours when that was sent (valid).
func (c *Client) free(ctx context.Context, s *transport.Script, timeout time.Duration, f *token, valid bool) error {
	m := &[...]any{&f.value, &c.waking} // one piece of memory
	giveUp := c.clock.now().add(timeout)
	unknown := false
	for n := 0; ; n++ {
		if n > 0 {
			timeout = c.clock.now().until(giveUp)
		}
		reply, err := c.roundTrip(ctx, max(time.Millisecond, timeout), s, f.keys, m[:])
		switch {
		case err == nil && (reply == int64(1) || unknown && valid):
			return nil
		case err == nil && reply == int64(0):
			return notOurs(ReasonGone)
		case err == nil:
			return notOurs(ReasonTaken)
		}
		effect, failure := classifyError(s.Op, f.key, err)
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

// clean frees in the background a lock that may be there although nobody holds it, until its lease must have ended:
// after Lease.TTL, or longest if it was extended. With stray, a request that takes it may still be on its way, so
// that "not there" is only believed after a while. When the client is being closed, clean asks once, before it
// returns.
func (c *Client) clean(f *token, lease Lease, longest time.Duration, stray bool) {
	own := *f // a request may be replaced
	began, life, timeout := c.clock.now(), max(lease.TTL, longest), c.opts.Timeout
	end, quiet := began.add(life+drift(life)), began
	if stray {
		quiet = began.add(c.strayTime())
		end = end.later(quiet)
	}
	work := func(ctx context.Context) {
		e := Event{Kind: EventCleaned, Key: own.key, Class: lease.Class, ID: own.id}
		for n := 0; ; n++ {
			err := c.free(ctx, releaseScript, timeout, &own, false)
			now := c.clock.now()
			e.Took = now.mono - began.mono
			_, ours := errors.AsType[notOurs](err)
			if err == nil && !stray || ours && now.reached(quiet) {
				e.Err = nil
				break
			}
			if err != nil && !ours {
				e.Err = err
			}
			if now.reached(end) || !retry.Pause(ctx, retry.Backoff(n, 50*time.Millisecond, time.Second)) {
				e.Kind = EventCleanFailed
				break
			}
		}
		c.emit(e)
	}
	if c.ctx.Err() == nil {
		c.spawn(work)
		return
	}
	end, quiet, stray, timeout = began, began, false, min(timeout, time.Second)
	work(context.Background())
}

// strayTime is how long a request that was given up may still be executed: it may lie in a server's buffers behind
// one that was sent later, or, where requests share a connection, wait for that to be given up.
func (c *Client) strayTime() time.Duration {
	if c.server != nil {
		return time.Second + c.opts.Timeout
	}
	return time.Second
}
