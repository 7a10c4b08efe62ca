package lock

import (
	"context"
	"sync"
	"time"
)

// Handle is a lock that is held. It is safe for concurrent use. Release must be
// called once the work is done, however it ended: until then the lease is
// renewed, also after the context given to Acquire has ended.
type Handle struct {
	c     *Client
	key   string
	id    string
	value string // the token: never shown
	keys  []string
	lease Lease
	fence int64
	began instant
	ctx   *holdContext
	stop  context.CancelCauseFunc
	stray bool // a copy of the acquire may still be on its way

	renewing chan struct{} // held by the one renewal on its way
	releases sync.Mutex    // held by the one Release on its way
	freed    bool          // under releases: a Release knows the outcome
	freedErr error         // under releases: and this it is

	mu       sync.Mutex
	ended    error         // why the hold is over; nil while it lasts
	until    instant       // end of the lease as far as it is certain
	maxUntil instant       // end of MaxHold; zero for none
	longest  time.Duration // TTL that the server was asked for at most
	failures int           // renewals failed and not yet told
	lastErr  error         // of those
	progress instant       // last sign of the work itself; zero for none
	told     instant       // that of it which the server knows
	guard    *time.Timer
	renewal  *time.Timer
}

func newHandle(ctx context.Context, c *Client, r *request, v verdict, until instant) *Handle {
	h := &Handle{
		c:        c,
		key:      r.key,
		id:       r.id,
		value:    r.value,
		keys:     r.keys[:2],
		lease:    r.lease,
		fence:    v.fence,
		began:    v.sent,
		until:    until,
		longest:  r.lease.TTL,
		stray:    r.open || r.stray,
		renewing: make(chan struct{}, 1),
	}
	if r.lease.MaxHold > 0 {
		h.maxUntil = v.sent.add(r.lease.MaxHold)
	}
	h.ctx, h.stop = newHoldContext(ctx, h)
	return h
}

// Context is the context to work under: it derives from the one given to
// Acquire and ends when the lock is lost or released, before the server can
// give it to another. Its cause then is a [*LostError] or [ErrReleased].
//
// Err looks at the clocks itself, so that a process that was paused learns at
// its first look that the lease is over; Done is closed by a timer and may be
// later by what the scheduler takes.
func (h *Handle) Context() context.Context { return h.ctx }

// Fence is greater than that of any earlier hold of the lock (see the package
// comment for the exception). Hand it to what you write to, and let that refuse
// any smaller one: nothing else stops a holder that does not look.
func (h *Handle) Fence() int64 { return h.fence }

// Key is the lock's name.
func (h *Handle) Key() string { return h.key }

// ID is the acquisition id, as in the metadata. It is no secret.
func (h *Handle) ID() string { return h.id }

// Err is nil while the lock is held, then why not any more: [ErrReleased] or a
// [*LostError].
func (h *Handle) Err() error {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// Validity is how much longer the lock is held for certain, without another
// renewal; 0 once it is over.
func (h *Handle) Validity() time.Duration {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return 0
	}
	return max(0, h.c.clock.now().until(h.deadline()))
}

// Until is the end of [Handle.Validity] on the local clock; zero once it is over.
func (h *Handle) Until() time.Time {
	left := h.Validity()
	if left == 0 {
		return time.Time{}
	}
	return time.Now().Add(left)
}

// Progress is a heartbeat of the work itself, apart from the lease: call it when
// a step is done, and those who look can tell slow work from stuck work. It
// costs no round trip: the next renewal tells the server.
func (h *Handle) Progress() {
	now := h.c.clock.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = now
}

// String names the lock and the hold, never the token.
func (h *Handle) String() string { return "lock " + h.key + " (hold " + h.id + ")" }

// GoString hides the token under %#v too.
func (h *Handle) GoString() string { return h.String() }

// arm starts the timers: one that ends the hold by the clock, whatever renewal
// does, and one for the next renewal.
func (h *Handle) arm(now instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return
	}
	h.guard = time.AfterFunc(now.until(h.deadline()), h.watch)
	if every := h.lease.renewEvery(h.c.opts); every > 0 {
		h.renewal = time.AfterFunc(early(every), h.renewTick)
	}
}

// deadline is the end of the hold as things stand; mu is held.
func (h *Handle) deadline() instant {
	if h.maxUntil == (instant{}) {
		return h.until
	}
	return instant{
		mono: min(h.until.mono, h.maxUntil.mono),
		wall: min(h.until.wall, h.maxUntil.wall),
	}
}

// watch runs at what was the deadline when it was set.
func (h *Handle) watch() {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.guard.Reset(max(0, h.c.clock.now().until(h.deadline())))
	}
}

// look ends the hold if a clock says so.
func (h *Handle) look() {
	now := h.c.clock.now()
	h.mu.Lock()
	if h.ended != nil || !now.reached(h.deadline()) {
		h.mu.Unlock()
		return
	}
	reason := ReasonExpired
	late := -now.until(h.deadline())
	switch {
	case h.maxUntil != (instant{}) && now.reached(h.maxUntil) && !now.reached(h.until):
		reason = ReasonMaxHold
	case late > h.lease.TTL/10 && late > 20*time.Millisecond:
		reason = ReasonPaused
	}
	cause := h.lastErr
	h.mu.Unlock()
	h.lose(reason, cause)
}

// lose ends the hold as lost, once.
func (h *Handle) lose(reason Reason, cause error) {
	lost := &LostError{Key: h.key, ID: h.id, Reason: reason, Err: cause}
	if h.end(lost) {
		h.c.emit(Event{Kind: EventLost, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: h.age(), Err: lost})
	}
}

// end ends the hold with cause; false if it was over already.
func (h *Handle) end(cause error) bool {
	h.mu.Lock()
	if h.ended != nil {
		h.mu.Unlock()
		return false
	}
	h.ended = cause
	if h.guard != nil {
		h.guard.Stop()
	}
	if h.renewal != nil {
		h.renewal.Stop()
	}
	h.mu.Unlock()
	h.stop(cause)
	h.c.remove(h)
	return true
}

func (h *Handle) age() time.Duration { return h.c.clock.now().mono - h.began.mono }
