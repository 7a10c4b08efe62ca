package lock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// early takes up to a tenth off an interval, so that locks taken together are
// not renewed together. Never more: observers take the interval at its word.
func early(every time.Duration) time.Duration { return every - rand.N(every/10+1) }

// renewTick renews the lease, trying again inside it, and sets the next tick.
func (h *Handle) renewTick() {
	if !h.c.enter() {
		return
	}
	defer h.c.wg.Done()
	for n := 0; ; n++ {
		err := h.renew(h.c.ctx, h.lease.TTL, n)
		h.mu.Lock()
		over := h.ended != nil
		if err == nil && !over {
			h.renewal.Reset(early(h.lease.renewEvery(h.c.opts)))
		}
		h.mu.Unlock()
		if err == nil || over {
			return
		}
		// The guard ends the hold in time, whatever happens here.
		if !pause(h.ctx.Context, backoff(n, h.lease.TTL/50, min(h.lease.TTL/10, time.Second))) {
			return
		}
	}
}

// Extend makes the lease last at least ttl from now (10 ms to 24 h), never
// less than it does already; 0 is Lease.TTL. Renewals go on as before.
//
// Errors: [ErrInvalid]; a [*LostError] or [ErrReleased] if the lock is not held
// any more; otherwise the lease stands as it was and may have been extended.
func (h *Handle) Extend(ctx context.Context, ttl time.Duration) error {
	if ttl == 0 {
		ttl = h.lease.TTL
	}
	if ttl < MinTTL || ttl > MaxTTL {
		return fmt.Errorf("extend lock %q: %w: ttl: want %s to %s, got %s", h.key, ErrInvalid, MinTTL, MaxTTL, ttl)
	}
	if !h.c.enter() {
		return fmt.Errorf("extend lock %q: %w", h.key, ErrClosed)
	}
	defer h.c.wg.Done()
	return h.renew(ctx, ttl, 0)
}

// patience is how long the n-th attempt in a row may take: a tenth of the TTL, so
// that a lost packet costs little, and twice that each time, since a new
// connection over a slow network needs several round trips. Half of what is
// left of the lease stays for the attempts after it.
func (h *Handle) patience(n int, left time.Duration) time.Duration {
	tenth := max(h.lease.TTL/10, 10*time.Millisecond)
	return min(h.c.opts.Timeout, max(tenth, min(tenth<<min(n, 8), left/2)), left)
}

// renew asks the server once, for the n-th time in a row, to let the lease last
// ttl from now. A lock that is not ours any more ends the hold at once.
func (h *Handle) renew(ctx context.Context, ttl time.Duration, n int) error {
	select {
	case h.renewing <- struct{}{}:
		defer func() { <-h.renewing }()
	case <-ctx.Done():
		return fmt.Errorf("renew lock %q: %w", h.key, context.Cause(ctx))
	}
	if err := h.Err(); err != nil {
		return fmt.Errorf("renew lock %q: %w", h.key, err)
	}
	h.mu.Lock()
	failures, progress, told := h.failures, h.progress, h.told
	left := h.c.clock.now().until(h.until)
	h.longest = max(h.longest, ttl)
	h.mu.Unlock()

	sent := h.c.clock.now()
	age := "-1"
	if progress != told {
		age = strconv.FormatInt((sent.mono - progress.mono).Milliseconds(), 10)
	}
	reply, err := h.c.roundTrip(ctx, h.patience(n, left), renewScript, h.keys, []any{
		h.value, h.id, ttl.Milliseconds(), record.Grace.Milliseconds(), strconv.Itoa(failures), age,
	})
	took := h.c.clock.now().mono - sent.mono
	if err != nil {
		_, failure := judge("renew", h.key, err)
		h.mu.Lock()
		h.failures++
		h.lastErr = failure
		h.mu.Unlock()
		h.c.emit(Event{Kind: EventRenewFailed, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: took, Err: failure})
		return failure
	}
	switch reply {
	case int64(1):
		h.mu.Lock()
		// A reply that comes when the lease is over does not bring it back.
		h.until = h.until.later(sent.add(ttl - drift(ttl)))
		h.failures -= failures
		h.lastErr = nil
		h.told = progress
		h.mu.Unlock()
		h.c.emit(Event{Kind: EventRenewed, Key: h.key, Class: h.lease.Class, ID: h.id, Trace: h.lease.Trace, Took: took})
		if err := h.Err(); err != nil {
			return fmt.Errorf("renew lock %q: %w", h.key, err)
		}
		return nil
	case int64(0):
		h.lose(ReasonGone, nil)
	default:
		h.lose(ReasonTaken, nil)
	}
	return fmt.Errorf("renew lock %q: %w", h.key, h.Err())
}
