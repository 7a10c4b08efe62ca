package scanner

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/locksteward/locksteward/internal/pace"
)

// Reason is why a sweep waited: one of [pace.Reasons], or one of these.
type Reason string

const (
	// ReasonWatch is the share of server time that the watch may take.
	ReasonWatch Reason = "watch"
	// ReasonLoading is a server that reads its data from disk.
	ReasonLoading Reason = "loading"
	// ReasonBusy is a server that runs a script for long.
	ReasonBusy Reason = "busy"
	// ReasonPaused is an operator who asked for a pause.
	ReasonPaused Reason = "paused"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	var out []Reason
	for _, r := range pace.Reasons() {
		out = append(out, Reason(r))
	}
	return append(out, ReasonWatch, ReasonLoading, ReasonBusy, ReasonPaused)
}

// throttle is where all calls to a target wait: while an operator pauses it, and for what its servers' pace asks. It
// counts the time by reason.
type throttle struct {
	mu     sync.Mutex
	waited map[Reason]time.Duration
	gate   *gate // closed to all while set
	// paused is called when a pause begins and ends; it may be nil.
	paused func(bool)
}

func newThrottle() *throttle { return &throttle{waited: map[Reason]time.Duration{}} }

// wait returns when a server may be asked something, or with ctx's error.
func (t *throttle) wait(ctx context.Context, server *pace.Server) error {
	for {
		if err := t.pass(ctx); err != nil {
			return err
		}
		began := time.Now()
		d := server.Wait(began)
		if d <= 0 {
			return nil
		}
		if err := t.pause(ctx, Reason(server.State(began).Reason), d); err != nil {
			return err
		}
	}
}

// pause waits for d for a reason.
func (t *throttle) pause(ctx context.Context, reason Reason, d time.Duration) error {
	began := time.Now()
	err := sleep(ctx, d)
	t.count(reason, time.Since(began))
	return err
}

func (t *throttle) count(reason Reason, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waited[reason] += d
}

// throttled returns the time waited so far by reason, each reason present, summed over masters.
func (t *throttle) throttled() map[Reason]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[Reason]time.Duration{}
	for _, r := range Reasons() {
		out[r] = 0
	}
	maps.Copy(out, t.waited)
	return out
}
