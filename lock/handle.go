package lock

import (
	"context"
	"fmt"
	"time"
)

// Handle is a lock that is held. It is safe for concurrent use. Release must be called once the work is done,
// however it ended: until then the lease is renewed, also after the context given to Acquire has ended.
type Handle struct {
	hold     *hold
	ctx      holdContext
	stop     context.CancelCauseFunc
	released bool // under hold.mu
}

// Context is the context to work under: it derives from the one given to Acquire and ends when the lock is lost or
// the handle released, before the server can give it to another. Its cause then is a [*LostError] or [ErrReleased].
//
// Err looks at the clocks itself, so that a process that was paused learns at its first look that the lease is
// over; Done is closed by a timer and may be later by what the scheduler takes.
func (h *Handle) Context() context.Context { return &h.ctx }

// Fence is greater than that of any earlier hold of the lock (see the package comment for the exception). Hand it
// to what you write to, and let that refuse any smaller one (package fenced): nothing else stops a holder that does
// not look. 0 means no fence; only a Redlock client returns it.
func (h *Handle) Fence() int64 { return h.hold.fence }

// Key is the lock's name.
func (h *Handle) Key() string { return h.hold.key }

// ID is the acquisition id, as in the metadata. It is no secret.
func (h *Handle) ID() string { return h.hold.id }

// Err is nil while the lock is held by this handle, then why not any more: [ErrReleased] or a [*LostError].
func (h *Handle) Err() error {
	h.hold.look()
	h.hold.mu.Lock()
	defer h.hold.mu.Unlock()
	if h.released {
		return ErrReleased
	}
	return h.hold.ended
}

// Validity is how much longer the lock is held for certain, without another renewal; 0 once it is over.
func (h *Handle) Validity() time.Duration {
	if h.Err() != nil {
		return 0
	}
	h.hold.mu.Lock()
	defer h.hold.mu.Unlock()
	return max(0, h.hold.c.clock.now().until(h.hold.deadline()))
}

// Progress is a heartbeat of the work itself, apart from the lease: call it when a step is done, and those who look
// can tell slow work from stuck work. It costs no round trip: the next renewal tells the server.
func (h *Handle) Progress() {
	h.hold.mu.Lock()
	defer h.hold.mu.Unlock()
	h.hold.progress = h.hold.c.clock.now()
}

// Extend makes the lease last at least ttl from now (10 ms to 24 h), never less than it does already; 0 is the
// lease's TTL. Renewals go on as before. What may pass (see [Code]; a lost reply too) is asked for again, while the
// lock is held, for up to Options.Timeout and as long as ctx lasts.
//
// Errors: [ErrInvalid]; a [*LostError] or [ErrReleased] if the lock is not held any more; otherwise the last
// answer, and the lease stands as it was and may have been extended.
func (h *Handle) Extend(ctx context.Context, ttl time.Duration) error {
	err := h.Err()
	switch {
	case ttl == 0:
		ttl = h.hold.ttl()
	case ttl < MinTTL || ttl > MaxTTL:
		err = fmt.Errorf("%w: ttl: want %s to %s, got %s", ErrInvalid, MinTTL, MaxTTL, ttl)
	}
	if err == nil && !h.hold.c.enter() {
		err = ErrClosed
	}
	if err != nil {
		return fmt.Errorf("extend lock %q: %w", h.Key(), err)
	}
	defer h.hold.c.wg.Done()
	return h.hold.extend(ctx, ttl)
}

// String names the lock and the hold, never the token.
func (h *Handle) String() string { return "lock " + h.hold.key + " (hold " + h.hold.id + ")" }

// GoString is String: %#v would read what is being written.
func (h *Handle) GoString() string { return h.String() }

// holdContext is a handle's context: a cancellable one that, when asked for its error, looks at the clocks first.
// Done and Value are those of the inner one, so that children attach to it and context.Cause finds the cause.
type holdContext struct {
	context.Context
	h *Handle
}

// Err ends the context if its lease is over and nobody noticed yet.
func (c *holdContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.h.hold.look()
	return c.Context.Err()
}

// String names the lock, never its token.
func (c *holdContext) String() string { return c.h.String() + ".Context" }

// GoString is String.
func (c *holdContext) GoString() string { return c.String() }
