package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// early takes up to a tenth off an interval, so that locks taken together are not renewed together. Never more:
// observers take the interval at its word.
func early(every time.Duration) time.Duration { return every - rand.N(every/10+1) }

// way is how a renewal is sent.
type way int

const (
	renewAlone    way = iota // somebody waits for it
	renewTogether            // it may wait for others
	renewHandoff             // it confirms what was handed over for a turn, and is not counted
)

const (
	// batchTTL is the shortest lease whose renewal may wait for others.
	batchTTL = time.Second
	// confirmAfter is how long the confirmation of a hand-off waits at most: a hold that is over by then never
	// sends it.
	confirmAfter = 10 * time.Millisecond
)

// keep renews the lease and sets the next renewal.
func (h *hold) keep(how way) {
	if !h.c.enter() {
		return
	}
	defer h.c.wg.Done()
	if h.insist(h.c.ctx, how, h.ttl) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	over := h.ended != nil
	if over {
		return
	}
	now := h.c.clock.now()
	h.busy = false
	h.schedule(now)
	h.timer.Reset(h.next(now))
}

// extend asks for a lease of ttl from now on behalf of somebody who waits: again and again inside the lease, for up
// to Options.Timeout, as an acquire does.
func (h *hold) extend(ctx context.Context, ttl time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, h.c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(h.c.ctx, cancel)() // Close does not wait for a pause
	err := h.insist(bounded, renewAlone, func() time.Duration { return ttl })
	switch over := h.outcome(); {
	case err == nil:
		return nil
	case over != nil:
		return fmt.Errorf("renew lock %q: %w", h.key, over)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", err, why(ctx))
	default:
		return err
	}
}

// insist asks for a lease of ttl until the server grants it, with growing pauses; the request is idempotent. It
// gives up when the hold is over or ctx has ended, and for who waits also where asking again is of no use.
func (h *hold) insist(ctx context.Context, how way, ttl func() time.Duration) error {
	var last, refused error
	for n := 0; ; n++ {
		effect, err := h.renew(ctx, ttl(), n, how)
		if err == nil || h.outcome() != nil || how == renewAlone && effect == backend.EffectNone {
			return err
		}
		if _, is := errors.AsType[*ServerError](err); is {
			refused = err
		} else if refused != nil {
			err = fmt.Errorf("%w; before that: %w", err, refused) // whose answer did not come says nothing of why
		}
		// That ctx ended before anything was sent says less than what came before.
		if last == nil || effect == backend.EffectUnknown || ctx.Err() == nil {
			last = err
		}
		// The timer ends the hold in time, whatever happens here.
		rest := h.rest(n, how)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= rest || !retry.Pause(ctx, rest) {
			return last
		}
	}
}

// rest is the pause after the n-th attempt in a row. The caller learns that the lease is over when it is, not later.
func (h *hold) rest(n int, how way) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	ttl := h.lease.TTL
	switch how {
	case renewAlone:
		left := h.c.clock.now().until(h.deadline())
		return min(retry.Backoff(n, min(ttl/50, 10*time.Millisecond), min(ttl/10, 300*time.Millisecond)), left)
	case renewHandoff:
		return retry.Backoff(n, record.Turn/50, record.Turn/10)
	default:
		return retry.Backoff(n, ttl/50, min(ttl/10, time.Second))
	}
}

// patience is how long the n-th attempt in a row may take: a tenth of the TTL, so that a lost packet costs little,
// and twice that each time, since a new connection over a slow network needs several round trips. Half of what is
// left of the lease stays for the attempts after it.
func (h *hold) patience(n int, left time.Duration) time.Duration {
	tenth := max(h.lease.TTL/10, 10*time.Millisecond)
	return min(h.c.opts.Timeout, max(tenth, min(tenth<<min(n, 8), left/2)), left)
}

// renewedTail is the metadata of a renewal, from its member "id" on; mu is held.
func (h *hold) renewedTail() string {
	head := len(`"id":"",`) + len(h.id)
	b := append(make([]byte, 0, len(h.tail)+96), h.tail[:head]...)
	number := func(member string, n int64) {
		if n > 0 {
			b = append(strconv.AppendInt(append(b, member...), n, 10), ',')
		}
	}
	number(`"seq":`, h.sent)
	number(`"renewals":`, h.renewed+1)
	number(`"renew_failures":`, h.failed)
	if len(h.handles) > 1 {
		number(`"holds":`, int64(len(h.handles)))
	}
	return string(append(b, h.tail[head:]...))
}

// renew asks the server once, for the n-th time in a row, to let the lease last ttl from now, and says of a failure
// what it may have done. A lock that is not ours any more ends the hold at once.
func (h *hold) renew(ctx context.Context, ttl time.Duration, n int, how way) (effect backend.Effect, err error) {
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
		return backend.EffectRetry, fmt.Errorf("renew lock %q: %w", h.key, why(ctx))
	}
	h.look()
	h.mu.Lock()
	if err := h.ended; err != nil {
		h.mu.Unlock()
		return backend.EffectNone, fmt.Errorf("renew lock %q: %w", h.key, err)
	}
	sent := h.c.clock.now()
	left := sent.until(h.until)
	patience, seq, age, tail := h.patience(n, left), int64(0), int64(-1), h.tail
	if how == renewHandoff {
		patience = min(h.c.opts.Timeout, max(left/4, time.Millisecond))
	} else {
		h.sent++
		seq, tail = h.sent, h.renewedTail()
		if h.progress != (instant{}) {
			age = (sent.mono - h.progress.mono).Milliseconds()
		}
	}
	h.longest = max(h.longest, ttl)
	h.mu.Unlock()

	ask := h.c.db.Eval
	if h.c.batch != nil && n == 0 && how == renewTogether && ttl >= batchTTL {
		ask = h.c.batch.Eval
	}
	reply, err := ask(transport.WithDeadline(ctx, time.Now().Add(patience)), renewScript, h.keys[:2], []any{
		&h.value, ttl.Milliseconds(), record.Grace.Milliseconds(), strconv.FormatInt(h.fence, 10), seq, age, tail,
	})
	answered := h.c.clock.now()
	took := answered.mono - sent.mono
	if err != nil {
		effect, err = classifyError("renew", h.key, err)
		h.mu.Lock()
		h.failed++
		// An answer that does not come says nothing of why: what the server refused it with before does.
		_, refused := errors.AsType[*ServerError](err)
		if before, was := errors.AsType[*ServerError](h.lastErr); was && !refused {
			h.lastErr = fmt.Errorf("%w; before that: %w", err, before)
		} else {
			h.lastErr = err
		}
		h.mu.Unlock()
		h.emit(EventRenewFailed, took, err)
		return effect, err
	}
	switch reply {
	case int64(1):
		// A reply that comes when the lease is over does not bring it back.
		h.look()
		h.mu.Lock()
		h.until = h.until.later(sent.add(ttl - drift(ttl)))
		h.lastErr = nil
		h.confirmAt = instant{}
		e := h.event(EventRenewed, took, nil)
		if how == renewTogether {
			e.Late = h.late(answered)
		}
		if how != renewHandoff {
			h.renewed++
		}
		h.mu.Unlock()
		if how != renewHandoff {
			h.c.emit(e)
		}
	case int64(0):
		h.lose(ReasonGone, nil)
	default:
		h.lose(ReasonTaken, nil)
	}
	if over := h.outcome(); over != nil {
		return backend.EffectNone, fmt.Errorf("renew lock %q: %w", h.key, over)
	}
	return backend.EffectNone, nil
}

// late returns how long after it was due a renewal was answered at now, if that is late (Event.Late); mu is held.
func (h *hold) late(now instant) time.Duration {
	d := now.mono - h.renewAt.mono
	if h.renewAt == (instant{}) || d <= max(h.lease.renewEvery()/10, 10*time.Millisecond) {
		return 0
	}
	return d
}
