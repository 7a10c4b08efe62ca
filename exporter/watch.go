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
	t.stale = true
}

// ObserveWatch is [Exporter.ObserveRecheck] for what a watch tells many times a
// second: it costs as much as the locks in sweep are, and gauges are measured by
// the next scrape.
func (e *Exporter) ObserveWatch(sweep locksteward.Sweep) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.target(sweep.Target)
	if t.pass == 0 {
		return // nothing to compare with yet
	}
	e.count(t, sweep, false)
	t.stale = true
}

// refresh publishes what was left to the next scrape.
func (e *Exporter) refresh() {
	e.mu.Lock()
	defer e.mu.Unlock()
	some := false
	for _, t := range e.targets {
		if !t.stale {
			continue
		}
		t.stale, some = false, true
		if t.gauges != nil {
			t.measure()
		}
	}
	if some {
		e.publish()
	}
}

func (t *target) emitWatch(s sink) {
	if t.watch == nil {
		return
	}
	for _, mode := range watchModes {
		s.series(watchMode, truth(mode == t.watch.Mode), t.name, mode)
	}
	s.series(watchBlind, (t.watchedBefore.Blind + t.watch.Blind).Seconds(), t.name)
	s.series(watchMissed, float64(t.watchedBefore.Missed+t.watch.Missed), t.name)
}

// emitClassWatch says of a class that is shown under its own name whether it is
// watched.
func (t *target) emitClassWatch(s sink, class string) {
	if t.watch == nil {
		return
	}
	if watched, known := t.watch.Classes[class]; known {
		s.series(classWatched, truth(watched), t.name, class)
	}
}
