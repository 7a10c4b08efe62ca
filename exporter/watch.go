package exporter

import (
	"time"

	"github.com/locksteward/locksteward"
)

// watchModes are the modes of [Watch] that are shown.
var watchModes = []string{"tracking", "keyspace", "sweep"}

// Watch is how far a target is watched between sweeps.
type Watch struct {
	// Mode is tracking, keyspace or sweep.
	Mode string
	// Classes says which classes are watched in full.
	Classes map[string]bool
	// Blind is the time in which changes may have gone unseen, Missed how many
	// changes went unseen outside of it; both only grow.
	Blind  time.Duration
	Missed int64
	// Delay is the longest lately until a change was judged and stored.
	Delay time.Duration
}

// SetWatch takes how far a target is watched.
func (e *Exporter) SetWatch(target string, w Watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.target(target)
	if old := t.watch; old != nil && (w.Blind < old.Blind || w.Missed < old.Missed) {
		// A reload began another watch, and a counter does not go back.
		t.watchedBefore.Blind += old.Blind
		t.watchedBefore.Missed += old.Missed
	}
	t.watch = &w
	e.dirty = true
	if t.known.loose {
		t.known.settle()
		t.stale = true
	}
}

// ObserveWatch is [Exporter.ObserveRecheck] for what a watch tells many times a
// second: it costs as much as the locks in u are. The age of the oldest lock of
// a class that lost it follows with the next SetWatch, everything else with the
// next scrape.
func (e *Exporter) ObserveWatch(u locksteward.Update) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.target(u.Target)
	if t.pass == 0 {
		return // nothing to compare with yet
	}
	e.count(t, locksteward.LocksOf(u.Locks), u.Endings, u.Losses, false)
	t.stale, e.dirty = true, true
}

// refresh publishes what was left to the next scrape: as much work as there are
// series, however many locks there are.
func (e *Exporter) refresh() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, t := range e.targets {
		if t.leader.over(now) {
			t.leader, e.dirty = &right{}, true
		}
	}
	if !e.dirty {
		return
	}
	for _, t := range e.targets {
		if t.stale && t.gauges != nil {
			t.measure()
		}
		t.stale = false
	}
	e.publish()
}

func (t *target) emitWatch(s *building) {
	if t.watch == nil {
		return
	}
	for _, mode := range watchModes {
		s.series(watchMode, truth(mode == t.watch.Mode), t.name, mode)
	}
	s.series(watchBlind, (t.watchedBefore.Blind + t.watch.Blind).Seconds(), t.name)
	s.series(watchMissed, float64(t.watchedBefore.Missed+t.watch.Missed), t.name)
	s.series(watchDelay, t.watch.Delay.Seconds(), t.name)
}

// emitClassWatch says of a class that is shown under its own name whether it is
// watched.
func (t *target) emitClassWatch(s *building, class string) {
	if t.watch == nil {
		return
	}
	if watched, known := t.watch.Classes[class]; known {
		s.series(classWatched, truth(watched), t.name, class)
	}
}
