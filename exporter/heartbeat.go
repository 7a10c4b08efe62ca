package exporter

import "time"

// heart is what is known of the agent's own life.
type heart struct {
	beat  time.Time       // the last heartbeat that was taken; zero: none
	stale map[string]bool // by target
}

// SetHeartbeat says when the last heartbeat was taken.
func (e *Exporter) SetHeartbeat(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heart.beat = at
	e.dirty = true
}

// SetSweepStale says of each target that is watched whether its complete sweeps are
// missing.
func (e *Exporter) SetSweepStale(stale map[string]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heart.stale = stale
	e.dirty = true
}

func (e *Exporter) emitHeart(s *building) {
	if !e.heart.beat.IsZero() {
		s.series(heartbeatLastSuccess, float64(e.heart.beat.UnixMilli())/1000)
	}
	for _, name := range e.names {
		if stale, known := e.heart.stale[name]; known {
			s.series(sweepStale, truth(stale), name)
		}
	}
}
