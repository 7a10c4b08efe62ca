package targets

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// sweepSlack is how much later than its schedule a sweep may be complete, in addition to twice the duration of the last
// one.
const sweepSlack = 5 * time.Second

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
