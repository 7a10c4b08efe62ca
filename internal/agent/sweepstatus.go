package agent

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/heartbeat"
)

// sweepSlack is how much later than its schedule a sweep may be complete, in addition to twice the duration of the last
// one.
const sweepSlack = 5 * time.Second

// sweepStatus is the state of the sweeps of all targets of the configuration.
func (a *Agent) sweepStatus(now time.Time) heartbeat.Status {
	state := a.current()
	s := heartbeat.Status{Stale: map[string]bool{}, Swept: true, Muted: !a.singleton.isActive()}
	if a.remote != nil && !s.Muted {
		a.addRemoteStatus(state, &s)
	}
	for name, w := range state.targets {
		last, stale := w.sweeps.at(now, w.scanner.Overdue)
		s.Stale[name] = stale
		s.Swept = s.Swept && !last.IsZero()
		if w.scanner.State().Up {
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
func (a *Agent) addRemoteStatus(state *state, s *heartbeat.Status) {
	for _, c := range state.cfg.Targets {
		if state.targets[c.Name] != nil {
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

// sweepTimes is when the last complete sweep of a target ended.
type sweepTimes struct {
	mu      sync.Mutex // guards all fields
	watched time.Time  // since when the target is watched
	last    time.Time  // zero: no complete sweep yet
	took    time.Duration
}

func (s *sweepTimes) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = now
}

func (s *sweepTimes) add(sweep locksteward.Sweep, now time.Time) {
	if !sweep.Complete() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.took = now, sweep.Duration
}

// at returns the end of the last complete sweep, and whether another one is overdue by the schedule.
func (s *sweepTimes) at(now time.Time, overdue func(time.Time) time.Time) (last time.Time, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.last
	if since.IsZero() {
		since = s.watched
	}
	if since.IsZero() {
		return s.last, false // not watched yet
	}
	limit := overdue(since)
	return s.last, !limit.IsZero() && now.After(limit.Add(sweepSlack+2*s.took))
}
