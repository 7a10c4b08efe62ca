package scanner

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

// Pause makes sweeps and the watch ask nothing of the target any more, also one
// that is under way, until [Scanner.Resume] or p.Until, if that is set. What a
// person or a release reads directly is not held. A second pause replaces the
// first one. What has been concluded stays.
func (s *Scanner) Pause(p locksteward.Pause) {
	t := s.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	g := &gate{pause: p, opened: make(chan struct{})}
	if old := t.gate; old != nil {
		old.stop()
		g.opened = old.opened // who waits there waits on
	}
	if !p.Until.IsZero() {
		g.timer = time.AfterFunc(time.Until(p.Until), func() { t.open(g) })
	}
	t.gate = g
	t.tell(true)
}

// Resume ends a pause; false if there was none.
func (s *Scanner) Resume() bool {
	t := s.throttle
	t.mu.Lock()
	g := t.gate
	t.mu.Unlock()
	return g != nil && t.open(g)
}

// Paused returns the pause that lasts, nil for none.
func (s *Scanner) Paused() *locksteward.Pause {
	s.throttle.mu.Lock()
	defer s.throttle.mu.Unlock()
	if s.throttle.gate == nil {
		return nil
	}
	return new(s.throttle.gate.pause)
}

// open opens g, unless it was opened or replaced before.
func (t *throttle) open(g *gate) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate != g {
		return false
	}
	t.gate = nil
	g.stop()
	close(g.opened)
	t.tell(false)
	return true
}

// tell reports that a pause began or ended; mu is held, so that the last word
// is the true one.
func (t *throttle) tell(paused bool) {
	if t.paused != nil {
		t.paused(paused)
	}
}

func (g *gate) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// pass waits while the gate is shut.
func (t *throttle) pass(ctx context.Context) error {
	for {
		t.mu.Lock()
		g := t.gate
		t.mu.Unlock()
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
