package scanner

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Progress is how far a sweep under way has come.
type Progress struct {
	// Started is when it began, by the true clock.
	Started time.Time
	// First says that no sweep has read the target yet: of its locks nothing is
	// known but what the watch has read meanwhile.
	First bool
	// Keys is how many keys were scanned so far, including those that the server
	// returned twice.
	Keys int64
	// OfKeys is how many keys the masters had when their passes began, -1 until all of
	// them have reported it.
	OfKeys int64
	// Idle is the time that an operator's pause took of it.
	Idle time.Duration
}

// Where an estimate begins to mean something: until then the pacer has not found
// its pace.
const (
	estimateAfter = 2 * time.Second
	estimateShare = 200 // one key in so many
)

// Percent is how much of the keyspace was scanned, below 100 since what was found
// is still judged at the end; false while it is not known of how much.
func (p Progress) Percent() (int, bool) {
	if p.OfKeys < 0 {
		return 0, false
	}
	if p.Keys >= p.OfKeys {
		return 99, true
	}
	return int(min(p.Keys*100/p.OfKeys, 99)), true
}

// Left is how long it will still take if it goes on as it did, from now on; false
// while that cannot be said.
func (p Progress) Left(now time.Time) (time.Duration, bool) {
	took := now.Sub(p.Started) - p.Idle
	if p.OfKeys < 0 || took < estimateAfter || p.Keys*estimateShare < p.OfKeys {
		return 0, false
	}
	left := max(p.OfKeys-p.Keys, 0)
	if left == 0 {
		return 0, true
	}
	return time.Duration(float64(took) * float64(left) / float64(p.Keys)), true
}

// Progress returns how far the sweep under way has come; false if there is none.
func (s *Scanner) Progress() (Progress, bool) {
	idle := s.throttle.Waited()[source.ReasonPaused]
	s.tracker.mu.Lock()
	defer s.tracker.mu.Unlock()
	if s.tracker.Started.IsZero() {
		return Progress{}, false
	}
	out := s.tracker.Progress
	out.Keys = s.scanned.Load() - s.tracker.scanned
	if out.OfKeys = s.tracker.keys; s.tracker.counted < s.tracker.masters || s.tracker.masters == 0 {
		out.OfKeys = -1
	}
	// Every pass waits for itself.
	out.Idle = (idle - s.tracker.idle) / time.Duration(max(s.tracker.masters, 1))
	return out, true
}

// sweepTracker is the sweep under way. Its passes tell it how many keys there are.
type sweepTracker struct {
	mu sync.Mutex
	Progress
	read    bool          // a sweep has read the target since the start
	scanned int64         // Stats.Keys at its start
	idle    time.Duration // of all pauses at its start
	masters int
	counted int   // masters whose keys are counted
	keys    int64 // of those
}

func (g *sweepTracker) begin(s *Scanner) {
	idle := s.throttle.Waited()[source.ReasonPaused]
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.Progress = Progress{Started: now, First: !g.read}
	g.scanned, g.idle = s.scanned.Load(), idle
	g.masters, g.counted, g.keys = 0, 0, 0
}

// count takes in how many masters there are.
func (g *sweepTracker) count(masters int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.masters = masters
}

// addTotal adds how many keys one master has; negative is not known.
func (g *sweepTracker) addTotal(keys int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if keys >= 0 {
		g.counted++
		g.keys += keys
	}
}

func (g *sweepTracker) end(sweep *locksteward.Sweep) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read = g.read || len(sweep.Masters) > 0
	g.Progress = Progress{}
}
