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
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &gate{pause: p, opened: make(chan struct{})}
	if old := b.gate; old != nil {
		old.stop()
		g.opened = old.opened // who waits there waits on
	}
	if !p.Until.IsZero() {
		g.timer = time.AfterFunc(time.Until(p.Until), func() { b.open(g) })
	}
	b.gate = g
	b.tell(true)
}

// Resume ends a pause; false if there was none.
func (s *Scanner) Resume() bool {
	b := s.budget
	b.mu.Lock()
	g := b.gate
	b.mu.Unlock()
	return g != nil && b.open(g)
}

// Paused returns the pause that lasts, nil for none.
func (s *Scanner) Paused() *locksteward.Pause {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.budget.gate == nil {
		return nil
	}
	return new(s.budget.gate.pause)
}

// open opens g, unless it was opened or replaced before.
func (b *budget) open(g *gate) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate != g {
		return false
	}
	b.gate = nil
	g.stop()
	close(g.opened)
	b.tell(false)
	return true
}

// tell passes on that a pause began or ended; mu is held, so that the last word
// is the true one.
func (b *budget) tell(paused bool) {
	if b.paused != nil {
		b.paused(paused)
	}
}

func (g *gate) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// pass waits while the gate is shut.
func (b *budget) pass(ctx context.Context) error {
	for {
		b.mu.Lock()
		g := b.gate
		b.mu.Unlock()
		if g == nil {
			return ctx.Err()
		}
		began := time.Now()
		select {
		case <-ctx.Done():
		case <-g.opened:
		}
		b.count(time.Since(began), map[Reason]float64{ReasonPaused: 1})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
