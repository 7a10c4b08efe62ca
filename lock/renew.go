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

// way is how a renewal is sent.
type way int

const (
	renewAlone    way = iota
	renewTogether     // it may wait for others
	renewGrant        // it confirms what was given for a turn, and is not counted
)

// keep renews the lease, trying again inside it, and sets the next renewal.
func (h *hold) keep(how way) {
	if !h.c.enter() {
		return
	}
	defer h.c.wg.Done()
	for n := 0; ; n++ {
		ttl := h.ttl()
		err := h.renew(h.c.ctx, ttl, n, how)
		h.mu.Lock()
		over := h.ended != nil
		if err == nil && !over {
			now := h.c.clock.now()
			h.busy = false
			h.schedule(now)
			h.timer.Reset(h.next(now))
		}
		h.mu.Unlock()
		if err == nil || over {
			return
		}
		// The timer ends the hold in time, whatever happens here.
		low, high := ttl/50, min(ttl/10, time.Second)
		if how == renewGrant {
			low, high = record.Turn/50, record.Turn/10
		}
		if !h.pause(backoff(n, low, high)) {
			return
		}
	}
}

// pause waits for d; false if the hold or the client has ended.
func (h *hold) pause(d time.Duration) bool { return pause(h.c.ctx, d) && !h.over() }

// patience is how long the n-th attempt in a row may take: a tenth of the TTL, so
// that a lost packet costs little, and twice that each time, since a new
// connection over a slow network needs several round trips. Half of what is
// left of the lease stays for the attempts after it.
func (h *hold) patience(n int, ttl, left time.Duration) time.Duration {
	tenth := max(ttl/10, 10*time.Millisecond)
	return min(h.c.opts.Timeout, max(tenth, min(tenth<<min(n, 8), left/2)), left)
}

// renew asks the server once, for the n-th time in a row, to let the lease last
// ttl from now. A lock that is not ours any more ends the hold at once.
func (h *hold) renew(ctx context.Context, ttl time.Duration, n int, how way) error {
	h.mu.Lock()
	if h.renewing == nil {
		h.renewing = make(chan struct{}, 1)
	}
	turn := h.renewing
	h.mu.Unlock()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return fmt.Errorf("renew lock %q: %w", h.key, why(ctx))
	}
	h.look()
	h.mu.Lock()
	if err := h.ended; err != nil {
		h.mu.Unlock()
		return fmt.Errorf("renew lock %q: %w", h.key, err)
	}
	failures, progress, told := h.failures, h.progress, h.told
	holds, count := "0", len(h.handles)
	if count != h.count {
		holds = strconv.Itoa(max(1, count))
	}
	left := h.c.clock.now().until(h.until)
	patience := h.patience(n, h.lease.TTL, left)
	if how == renewGrant {
		patience, count, holds = min(h.c.opts.Timeout, max(left/4, time.Millisecond)), h.count, "0"
		failures, progress = 0, told
	}
	h.longest = max(h.longest, ttl)
	h.mu.Unlock()

	sent := h.c.clock.now()
	age := "-1"
	if progress != told {
		age = strconv.FormatInt((sent.mono - progress.mono).Milliseconds(), 10)
	}
	ask := h.c.db.eval
	if h.c.batch != nil && n == 0 && how == renewTogether && ttl >= batchTTL {
		ask = h.c.batch.eval
	}
	args := []any{
		&h.value, &h.id, ttl.Milliseconds(), record.Grace.Milliseconds(), strconv.Itoa(failures), age, holds, "1",
	}
	keys := []string{h.keys[0], h.keys[1], h.keys[4]}
	if how != renewGrant {
		keys, args = keys[:2], args[:7]
	}
	reply, err := ask(&deadlineContext{ctx, time.Now().Add(patience)}, renewScript, keys, args)
	answered := h.c.clock.now()
	took := answered.mono - sent.mono
	if err != nil {
		_, failure := judge("renew", h.key, err)
		h.mu.Lock()
		h.failures++
		h.lastErr = failure
		h.mu.Unlock()
		h.emit(EventRenewFailed, took, failure)
		return failure
	}
	switch reply {
	case int64(1):
		// A reply that comes when the lease is over does not bring it back.
		h.look()
		h.mu.Lock()
		h.until = h.until.later(sent.add(ttl - drift(ttl)))
		h.failures -= failures
		h.lastErr = nil
		h.told, h.count = progress, count
		e := h.event(EventRenewed, took, nil)
		if how == renewTogether {
			e.Late = h.late(answered)
		}
		h.mu.Unlock()
		if how != renewGrant {
			h.c.emit(e)
		}
		if err := h.outcome(); err != nil {
			return fmt.Errorf("renew lock %q: %w", h.key, err)
		}
		return nil
	case int64(0):
		h.lose(ReasonGone, nil)
	default:
		h.lose(ReasonTaken, nil)
	}
	return fmt.Errorf("renew lock %q: %w", h.key, h.outcome())
}
