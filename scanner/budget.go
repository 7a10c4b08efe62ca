package scanner

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Reason is why a sweep waited.
type Reason string

const (
	// ReasonShare is the share of server time that sweeping may take.
	ReasonShare Reason = "share"
	// ReasonLatency is a server that answers slower than it can.
	ReasonLatency Reason = "latency"
	// ReasonLoading is a server that reads its data from disk.
	ReasonLoading Reason = "loading"
	// ReasonBusy is a server that runs a script for long.
	ReasonBusy Reason = "busy"
	// ReasonMemory is a server with over 95 % of maxmemory in use.
	ReasonMemory Reason = "memory"
	// ReasonPaused is an operator who asked for a pause.
	ReasonPaused Reason = "paused"
)

// Reasons are all reasons, in the order of their meaning above.
var reasons = []Reason{ReasonShare, ReasonLatency, ReasonLoading, ReasonBusy, ReasonMemory, ReasonPaused}

// Reasons returns all reasons.
func Reasons() []Reason { return append([]Reason(nil), reasons...) }

// budget holds all calls of a target's sweeps to a share of server time: after
// work w nothing is asked for w·(1/share − 1). It is one for all masters of a
// target, since they often share a machine.
type budget struct {
	share float64 // 1: no limit

	mu     sync.Mutex
	free   time.Time          // when all work so far is paid for
	mix    map[Reason]float64 // of the debt, which part is whose
	waited map[Reason]time.Duration
	gate   *gate // closed to all while set
	// paused is told when a pause begins and ends; it may be nil.
	paused func(bool)
}

func newBudget(share float64) *budget {
	return &budget{share: share, mix: map[Reason]float64{}, waited: map[Reason]time.Duration{}}
}

// work is what one call cost the server, and what slows sweeping down now.
type work struct {
	took time.Duration
	// latency and memory are factors on the share, 1 for none.
	latency, memory float64
}

// spend books w. It does not wait.
func (b *budget) spend(w work) {
	if b.share >= 1 || w.took <= 0 {
		return
	}
	took := float64(w.took)
	base := took * (1/b.share - 1)
	slow := took * (1/(b.share*w.latency) - 1)
	full := took * (1/(b.share*w.latency*w.memory) - 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(time.Duration(full))
	b.mix = map[Reason]float64{
		ReasonShare:   base / full,
		ReasonLatency: (slow - base) / full,
		ReasonMemory:  (full - slow) / full,
	}
}

// wait returns when all work so far is paid for, or with ctx's error.
func (b *budget) wait(ctx context.Context) error {
	for {
		if err := b.pass(ctx); err != nil || b.share >= 1 {
			return err
		}
		b.mu.Lock()
		d := time.Until(b.free)
		mix := b.mix
		b.mu.Unlock()
		if d <= 0 {
			return nil
		}
		began := time.Now()
		err := sleep(ctx, d)
		b.count(time.Since(began), mix)
		if err != nil {
			return err
		}
	}
}

// pause waits for d for a reason of its own.
func (b *budget) pause(ctx context.Context, reason Reason, d time.Duration) error {
	began := time.Now()
	err := sleep(ctx, d)
	b.count(time.Since(began), map[Reason]float64{reason: 1})
	return err
}

func (b *budget) count(d time.Duration, mix map[Reason]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for reason, part := range mix {
		b.waited[reason] += time.Duration(float64(d) * part)
	}
}

// throttled returns the time waited so far by reason, each reason present,
// summed over masters.
func (b *budget) throttled() map[Reason]time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[Reason]time.Duration, len(reasons))
	for _, r := range reasons {
		out[r] = 0
	}
	maps.Copy(out, b.waited)
	return out
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
