package source

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

// Throttle is where all calls to a target wait: while an operator pauses it, and for what
// the pace of its servers asks. It counts the time by reason. It is safe for concurrent use.
type Throttle struct {
	// paused is called when a pause begins and ends; it may be nil.
	paused func(bool)

	mu     sync.Mutex // guards what follows
	waited map[Reason]time.Duration
	gate   *gate // closed to all while set
}

// NewThrottle returns a throttle that calls paused, if that is not nil, when a pause begins
// and ends. paused must return soon and not call the throttle.
func NewThrottle(paused func(bool)) *Throttle {
	return &Throttle{waited: map[Reason]time.Duration{}, paused: paused}
}

// Wait returns when a server may be asked something, or with ctx's error.
func (t *Throttle) Wait(ctx context.Context, server *pace.Server) error {
	for {
		if err := t.Pass(ctx); err != nil {
			return err
		}
		began := time.Now()
		d := server.Wait(began)
		if d <= 0 {
			return nil
		}
		if err := t.Sleep(ctx, Reason(server.State(began).Reason), d); err != nil {
			return err
		}
	}
}

// Sleep waits for d for a reason, or until ctx is done.
func (t *Throttle) Sleep(ctx context.Context, reason Reason, d time.Duration) error {
	began := time.Now()
	err := Sleep(ctx, d)
	t.count(reason, time.Since(began))
	return err
}

func (t *Throttle) count(reason Reason, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waited[reason] += d
}

// Waited returns the time waited so far by reason, each reason present, summed over servers.
func (t *Throttle) Waited() map[Reason]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[Reason]time.Duration{}
	for _, r := range Reasons() {
		out[r] = 0
	}
	maps.Copy(out, t.waited)
	return out
}

// Sleep waits for d or until ctx is done, and returns ctx's error then.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
