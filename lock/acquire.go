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
	"github.com/locksteward/locksteward/lock/record"
)

// Acquire takes the lock key. If another has it, Acquire waits in the lock's queue: first come, first served, among
// the waiters that live. A release hands the lock to the first of them. A deadline of ctx is minded at once, a
// cancellation while a reply is awaited when that is there, which takes Options.Timeout at most; Acquire leaves the
// queue before it returns, within 100 ms of a deadline. The handle's context derives from ctx.
//
// Errors: [ErrInvalid] for bad arguments, before anything is sent; [ErrHeld] (a [*HeldError]) when ctx or
// Lease.Wait ended the waiting, and then also the cause of ctx; a [*ServerError] for an error reply; [ErrUnknown]
// when no reply came, also to who leaves the queue, [ErrTooLate] when it came too late (in both cases the lock,
// should it have been taken, is given back in the background); [ErrClosed].
func (c *Client) Acquire(ctx context.Context, key string, lease Lease) (*Handle, error) {
	return c.acquire(ctx, key, lease, true)
}

// TryAcquire takes the lock key or says at once who has it, or that others wait for it: nobody overtakes the queue.
// Errors are those of [Client.Acquire].
func (c *Client) TryAcquire(ctx context.Context, key string, lease Lease) (*Handle, error) {
	return c.acquire(ctx, key, lease, false)
}

// Do runs f while it holds the lock key, and releases it. f should do its work under the context it is given, which
// ends when the lock is lost, and hand the fence to what it writes to. The error joins that of f and, if the lock
// was lost before f returned, a [*LostError]: then f did not run alone to its end, whatever it says.
func (c *Client) Do(ctx context.Context, key string, lease Lease, f func(ctx context.Context, fence int64) error) (err error) {
	h, err := c.Acquire(ctx, key, lease)
	if err != nil {
		return err
	}
	defer func() {
		lost := h.Err()
		released := h.Release(ctx)
		if lost == nil {
			lost = released
		}
		err = errors.Join(err, lost)
	}()
	return f(h.Context(), h.Fence())
}

// verdict is a definite answer to an attempt.
type verdict struct {
	taken  bool
	sent   instant // a lease taken lasts from here
	began  instant // the hold counts from here
	lease  time.Duration
	fence  int64
	holder *record.Meta
	left   time.Duration // of the lease of another, at seen; negative: no TTL
	seen   time.Time
	queued bool // the lock is free, but others are before: worth a look after left
	rank   int  // place in the queue; -1 for none
}

func (c *Client) acquire(ctx context.Context, key string, lease Lease, waits bool) (h *Handle, err error) {
	err = lease.validate(key, c.opts)
	if c.backend != nil {
		err = errors.Join(err, c.backend.CheckTTL(lease.TTL))
	}
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = why(ctx)
	case !c.enter():
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", clip(key), err)
	}
	defer c.wg.Done()
	c.begin()
	end := c.trace(ctx, "acquire", key, &lease)
	s := sessionOf(ctx)
	leave, err := s.enter(ctx, c, key)
	if err != nil {
		end(nil, false, err)
		return nil, err
	}
	defer leave()
	began := c.clock.now()
	e := Event{Kind: EventAcquired, Key: key, Class: lease.Class, Trace: lease.Trace}
	if held := s.find(c, key); held != nil {
		h, err = c.reenter(ctx, held, lease)
		e = held.event(EventReentered, 0, nil)
	} else {
		r := c.request(key, lease, s, waits)
		h, err = c.obtain(ctx, r)
		e.ID, e.Contended = r.id, r.contended
	}
	switch {
	case errors.Is(err, ErrHeld):
		e.Kind = EventHeld
	case err != nil:
		e.Kind = EventAcquireFailed
	}
	e.Took, e.Err = c.took(began), err
	end(h, e.Contended, err)
	c.emit(e)
	return h, err
}

// obtain asks, or waits, for the lock, and leaves nothing behind if it does not get it.
func (c *Client) obtain(ctx context.Context, r *request) (*Handle, error) {
	ask := c.wait
	if !r.waits {
		ask = c.attempt
	}
	v, err := ask(ctx, r)
	if err == nil && !v.taken {
		err = c.heldError(r, v, nil)
	}
	var h *Handle
	if err == nil {
		h, err = c.handle(ctx, r, v)
	}
	if r.enqueued && !v.taken {
		err = c.resign(ctx, r, err)
	}
	if err != nil && (v.taken || r.open || r.stray) {
		c.clean(&r.token, r.lease, 0, r.open || r.stray)
	}
	return h, err
}

// handle makes a handle of a lock that was taken, if it is still worth having.
func (c *Client) handle(ctx context.Context, r *request, v verdict) (*Handle, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("acquire lock %q: %w", r.key, why(ctx))
	}
	until := v.sent.add(v.lease - drift(v.lease))
	now := c.clock.now()
	if now.until(until) < least(v.lease) {
		return nil, fmt.Errorf("acquire lock %q: %w: %s after the request, for a TTL of %s",
			r.key, ErrTooLate, now.mono-v.sent.mono, v.lease)
	}
	h := newHold(ctx, c, r, v, until)
	if !c.add(h.hold) {
		h.hold.end(ErrClosed)
		return nil, fmt.Errorf("acquire lock %q: %w", r.key, ErrClosed)
	}
	r.session.add(h.hold)
	if v.lease < r.lease.TTL {
		h.hold.confirmAt = now.add(min(confirmAfter, now.until(until)/5))
	}
	h.hold.arm(now)
	return h, nil
}

func (c *Client) heldError(r *request, v verdict, cause error) error {
	e := &HeldError{Key: r.key, Queued: v.queued, Err: cause}
	if v.holder != nil {
		e.Holder = *v.holder
	}
	if v.left >= 0 && !v.queued {
		e.Until = v.seen.Add(v.left)
	}
	return e
}

// attempt asks once for the lock. What fails without an effect, or with an unknown one, it asks again for up to
// Options.Timeout: the request is idempotent. From one server the last answer may take as long again; an attempt at
// a majority, whose parts have bounds of their own, ends within that time.
func (c *Client) attempt(ctx context.Context, r *request) (verdict, error) {
	args := c.attempted(r)
	// A reply that comes later than this is of no use.
	useful := r.lease.TTL - drift(r.lease.TTL) - least(r.lease.TTL)
	var giveUp instant
	for n := 0; ; n++ {
		sent := c.clock.now()
		if n == 0 {
			giveUp = sent.add(c.opts.Timeout)
		}
		patience := min(c.opts.Timeout, useful)
		if c.backend != nil {
			patience = min(patience, sent.until(giveUp))
			if n > 0 {
				c.again(r)
				args = c.attempted(r)
			}
		}
		reply, err := c.roundTrip(ctx, patience, acquireScript, r.keys, args)
		if err == nil {
			if r.nonce != "" {
				r.trip = c.clock.now().mono - sent.mono
			}
			return c.answer(r, sent, reply)
		}
		effect, failure := classifyError("acquire", r.key, err)
		if effect == backend.EffectUnknown {
			if !r.open && !r.stray {
				r.base = sent
			}
			r.open = true
		}
		if ctx.Err() != nil {
			return verdict{}, fmt.Errorf("acquire lock %q: %w", r.key, why(ctx))
		}
		if c.ctx.Err() != nil {
			return verdict{}, fmt.Errorf("%w: %w", failure, ErrClosed)
		}
		now := c.clock.now()
		rest, left := retry.Backoff(n, 10*time.Millisecond, 300*time.Millisecond), now.until(giveUp)
		if c.backend != nil {
			left -= c.backend.Spare(r.lease.TTL)
			rest = min(rest, left)
		}
		// A reply that is late for the lease will be as late the next time.
		late := effect == backend.EffectUnknown && useful < c.opts.Timeout && now.mono-sent.mono >= useful
		lied := c.backend == nil && respcheck.Lied(err) // it will hardly say something else
		if effect == backend.EffectNone || late || lied || left <= 0 {
			return verdict{}, failure
		}
		if !retry.Pause(ctx, rest) {
			return verdict{}, fmt.Errorf("acquire lock %q: %w", r.key, why(ctx))
		}
	}
}

// answer reads the reply to an attempt that was sent at sent.
func (c *Client) answer(r *request, sent instant, reply any) (verdict, error) {
	list, _ := reply.([]any)
	state, _ := transport.At(list, 0).(int64)
	fence, taken := reply.(string)
	switch {
	case len(list) >= 2 && state == 2:
		// Taken by an attempt whose reply was lost, or given by a release.
		if r.open || r.stray || r.nonce == "" {
			sent = r.base
		}
		fence, taken = transport.Text(list[1]), true
	case len(list) >= 4 && (state == 0 || state == 3):
		// An attempt whose reply was lost had no effect before this one. It may be under way still, and then takes
		// effect after it.
		r.stray = r.stray || r.open
		r.contended = true
		r.open = false
		r.base = sent
		if since := transport.Number(list[3]); since > 0 {
			r.since = since
		}
		// What is malformed in the metadata is left out.
		holder, _ := record.Decode(transport.Text(transport.At(list, 4)))
		return verdict{
			left: time.Duration(transport.Number(list[1])) * time.Millisecond, seen: time.Now(), rank: int(transport.Number(list[2])),
			queued: state == 3, holder: holder,
		}, nil
	}
	if !taken {
		r.open = true
		return verdict{}, fmt.Errorf("acquire lock %q: %w: reply of an unknown form", r.key, ErrUnknown)
	}
	return verdict{taken: true, sent: sent, began: sent, lease: r.lease.TTL, fence: transport.Number(fence)}, nil
}

// why is the cause of ctx's end, which says too that it was cancelled or timed out.
func why(ctx context.Context) error {
	cause, err := context.Cause(ctx), ctx.Err()
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
