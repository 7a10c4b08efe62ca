package lock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// hold is one acquisition of a lock. The handles of a session that took it more than once share it.
type hold struct {
	token
	c       *Client
	lease   Lease
	fence   int64
	began   instant
	session *session
	stray   bool // a copy of the acquire may still be on its way

	releases sync.Mutex // held by the one release on its way
	freed    bool       // under releases: the outcome is known
	freedErr error      // under releases: and this it is

	mu        sync.Mutex
	handles   []*Handle     // those not released
	ended     error         // why the hold is over; nil while it lasts
	until     instant       // end of the lease as far as it is certain
	maxUntil  instant       // end of MaxHold; zero for none
	longest   time.Duration // TTL that the server was asked for at most
	sent      int64         // renewals sent so far
	renewed   int64         // of those, answered
	failed    int64         // of those, not
	lastErr   error         // of those since the last success
	progress  instant       // last sign of the work itself; zero for none
	timer     *time.Timer   // next look: a renewal, or the end
	renewAt   instant       // next renewal; zero for none
	confirmAt instant       // when to confirm a lock that was handed over; zero for one that lasts for its TTL
	busy      bool          // renewals are under way
	renewing  chan struct{} // held by the one renewal on its way
}

func newHold(ctx context.Context, c *Client, r *request, v verdict, until instant) *Handle {
	m := &struct { // one piece of memory
		hold   hold
		first  Handle
		handle [1]*Handle
	}{hold: hold{
		token: r.token, c: c, lease: r.lease, fence: v.fence, began: v.began, session: r.session,
		stray: r.open || r.stray, until: until, longest: r.lease.TTL,
	}}
	h := &m.hold
	if r.lease.MaxHold > 0 {
		h.maxUntil = v.began.add(r.lease.MaxHold)
	}
	h.handles = m.handle[:0]
	h.attach(ctx, &m.first)
	return &m.first
}

// attach makes handle one of the hold's, with a context under ctx; mu is held.
func (h *hold) attach(ctx context.Context, handle *Handle) {
	handle.hold, handle.ctx.h = h, handle
	handle.ctx.Context, handle.stop = context.WithCancelCause(ctx)
	h.handles = append(h.handles, handle)
}

// join adds a handle to a hold that lasts; a longer TTL counts from now on.
func (h *hold) join(ctx context.Context, again *Handle, lease Lease) error {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return h.ended
	}
	if lease.TTL > h.lease.TTL {
		h.lease.TTL = lease.TTL
		h.longest = max(h.longest, lease.TTL)
	}
	h.attach(ctx, again)
	return nil
}

// part takes a handle from the hold and ends its context. It says how many are left, or -1 if it was taken before.
func (h *hold) part(handle *Handle, cause error) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if handle.released {
		return -1
	}
	handle.released = true
	handle.stop(cause)
	h.handles = slices.DeleteFunc(h.handles, func(o *Handle) bool { return o == handle })
	return len(h.handles)
}

func (h *hold) ttl() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease.TTL
}

// outcome is why the hold is over; nil while it lasts, as far as is known.
func (h *hold) outcome() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// arm starts the timer that ends the hold by the clock, whatever renewal does, and that renews it before.
func (h *hold) arm(now instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.schedule(now)
		h.timer = time.AfterFunc(h.next(now), h.tick)
	}
}

// schedule sets the next renewal; mu is held.
func (h *hold) schedule(now instant) {
	if every := h.lease.renewEvery(); every > 0 {
		h.renewAt = now.add(early(every))
	}
}

// next is how long it is to the next thing to do; mu is held.
func (h *hold) next(now instant) time.Duration {
	d := now.until(h.deadline())
	for _, at := range [...]instant{h.renewAt, h.confirmAt} {
		if !h.busy && at != (instant{}) {
			d = min(d, at.mono-now.mono)
		}
	}
	return max(0, d)
}

// deadline is the end of the hold as things stand; mu is held.
func (h *hold) deadline() instant {
	end := h.until
	if h.maxUntil != (instant{}) {
		end = end.earlier(h.maxUntil)
	}
	if beat := h.c.beatUntil.Load(); beat != nil {
		end = end.earlier(*beat)
	}
	return end
}

// tick runs when the timer fires: it ends the hold or renews it.
func (h *hold) tick() {
	h.look()
	h.mu.Lock()
	if h.ended != nil {
		h.mu.Unlock()
		return
	}
	now := h.c.clock.now()
	due := func(at instant) bool { return !h.busy && at != (instant{}) && now.mono >= at.mono }
	how, confirm := renewTogether, due(h.confirmAt)
	if confirm {
		how = renewHandoff
	}
	renew := confirm || due(h.renewAt)
	h.busy = h.busy || renew
	h.timer.Reset(h.next(now))
	h.mu.Unlock()
	if renew {
		h.keep(how)
	}
}

// look ends the hold if a clock says so.
func (h *hold) look() {
	now := h.c.clock.now()
	h.mu.Lock()
	if h.ended != nil || !now.reached(h.deadline()) {
		h.mu.Unlock()
		return
	}
	reason, late := ReasonHeartbeat, -now.until(h.deadline())
	switch {
	case now.reached(h.until) && late > h.lease.TTL/10 && late > 20*time.Millisecond:
		reason = ReasonPaused
	case now.reached(h.until):
		reason = ReasonExpired
	case h.maxUntil != (instant{}) && now.reached(h.maxUntil):
		reason = ReasonMaxHold
	}
	cause := h.lastErr
	h.mu.Unlock()
	h.lose(reason, cause)
}

// lose ends the hold as lost, once.
func (h *hold) lose(reason Reason, cause error) {
	lost := &LostError{Key: h.key, ID: h.id, Reason: reason, Err: cause}
	if h.end(lost) {
		h.emit(EventLost, h.age(), lost)
	}
}

// end ends the hold with cause; false if it was over already.
func (h *hold) end(cause error) bool {
	h.mu.Lock()
	if h.ended != nil {
		h.mu.Unlock()
		return false
	}
	h.ended = cause
	if h.timer != nil {
		h.timer.Stop()
	}
	for _, handle := range h.handles {
		handle.stop(cause)
	}
	h.mu.Unlock()
	h.c.remove(h)
	return true
}

func (h *hold) age() time.Duration { return h.c.clock.now().mono - h.began.mono }

func (h *hold) emit(kind EventKind, took time.Duration, err error) {
	h.c.emit(h.event(kind, took, err))
}

func (h *hold) event(kind EventKind, took time.Duration, err error) Event {
	return Event{Kind: kind, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: took, Err: err}
}
