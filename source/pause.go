package source

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// gate is shut while an operator wants quiet.
type gate struct {
	pause  locksteward.Pause
	opened chan struct{}
	timer  *time.Timer // nil without an end
}

// Pause shuts the throttle until [Throttle.Resume] or p.Until, if that is set. A second
// pause replaces the first one.
func (t *Throttle) Pause(p locksteward.Pause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := &gate{pause: p, opened: make(chan struct{})}
	if old := t.gate; old != nil {
		old.stop()
		g.opened = old.opened // callers that wait there wait on
	}
	if !p.Until.IsZero() {
		g.timer = time.AfterFunc(time.Until(p.Until), func() { t.open(g) })
	}
	t.gate = g
	t.report(true)
}

// Resume ends a pause and reports whether there was one.
func (t *Throttle) Resume() bool {
	g := t.shut()
	return g != nil && t.open(g)
}

// Paused returns the current pause, nil if there is none.
func (t *Throttle) Paused() *locksteward.Pause {
	if g := t.shut(); g != nil {
		return new(g.pause)
	}
	return nil
}

// shut returns the gate while it is shut, else nil.
func (t *Throttle) shut() *gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gate
}

// open opens g, unless it was opened or replaced before.
func (t *Throttle) open(g *gate) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate != g {
		return false
	}
	t.gate = nil
	g.stop()
	close(g.opened)
	t.report(false)
	return true
}

// report calls paused with the mutex held, so that the last call is the true one.
func (t *Throttle) report(paused bool) {
	if t.paused != nil {
		t.paused(paused)
	}
}

func (g *gate) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// Pass waits until there is no pause, or returns ctx's error.
func (t *Throttle) Pass(ctx context.Context) error {
	for {
		g := t.shut()
		if g == nil {
			return ctx.Err()
		}
		began := time.Now()
		select {
		case <-ctx.Done():
		case <-g.opened:
		}
		t.count(ReasonPaused, time.Since(began))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Resumed is [Throttle.Pass] whose wait is not counted: for what waits beside a sweep.
func (t *Throttle) Resumed(ctx context.Context) error {
	for ctx.Err() == nil {
		g := t.shut()
		if g == nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-g.opened:
		}
	}
	return ctx.Err()
}
