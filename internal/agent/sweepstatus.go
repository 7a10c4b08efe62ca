package agent

import (
	"time"

	"github.com/locksteward/locksteward/internal/heartbeat"
	"github.com/locksteward/locksteward/internal/targets"
)

// sweepStatus is the state of the sweeps of all targets of the configuration.
func (a *Agent) sweepStatus(now time.Time) heartbeat.Status {
	state := a.targets.Now()
	s := heartbeat.Status{Stale: map[string]bool{}, Swept: true, Muted: !a.singleton.isActive()}
	if a.remote != nil && !s.Muted {
		a.addRemoteStatus(state, &s)
	}
	for name, w := range state.Watched {
		last, stale := w.Swept(now)
		s.Stale[name] = stale
		s.Swept = s.Swept && !last.IsZero()
		if w.Up() {
			s.Up++
		}
		if s.Oldest.IsZero() || last.Before(s.Oldest) {
			s.Oldest = last
		}
	}
	return s
}

// addRemoteStatus adds the targets of other replicas. While nothing is known of one of them no heartbeats are sent: if that
// lasts, somebody must look.
func (a *Agent) addRemoteStatus(state *targets.Snapshot, s *heartbeat.Status) {
	for _, c := range state.Config.Targets {
		if state.Watched[c.Name] != nil {
			continue
		}
		t, overdue, ok := a.remote.Polled(c.Name)
		if !ok || t.LastSweep == nil {
			s.Swept = false
			continue
		}
		s.Stale[c.Name] = overdue
		if t.Up {
			s.Up++
		}
		if at := t.LastSweep.At; s.Oldest.IsZero() || at.Before(s.Oldest) {
			s.Oldest = at
		}
	}
}
