package exporter_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

func TestWatchMetrics(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a", "b")
	want(t, e, map[string]float64{`watch_missed_total{target="m"}`: absent})
	e.SetWatch("m", exporter.Watch{Mode: "keyspace", Classes: map[string]bool{"a": true, "b": false}, Blind: 1500 * time.Millisecond, Missed: 2})
	want(t, e, map[string]float64{
		`watch_mode{mode="keyspace",target="m"}`:    1,
		`watch_mode{mode="tracking",target="m"}`:    0,
		`watch_mode{mode="sweep",target="m"}`:       0,
		`watch_blind_seconds_total{target="m"}`:     1.5,
		`watch_missed_total{target="m"}`:            2,
		`class_watched{class="a",target="m"}`:       1,
		`class_watched{class="b",target="m"}`:       0,
		`class_watched{class="default",target="m"}`: absent,
	})
	// A reload begins another watch: counters go on.
	e.SetWatch("m", exporter.Watch{Mode: "tracking", Blind: time.Second})
	want(t, e, map[string]float64{
		`watch_blind_seconds_total{target="m"}`:  2.5,
		`watch_missed_total{target="m"}`:         2,
		`watch_mode{mode="tracking",target="m"}`: 1,
	})
}

// TestDelayOfTheWatchIsShown as it is now: a churn that is over is not shown for ever,
// and a watch that has reported nothing yet has a delay of 0.
// fault: 57
func TestDelayOfTheWatchIsShown(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	want(t, e, map[string]float64{`watch_delay_seconds{target="m"}`: absent})
	for _, c := range []struct {
		delay time.Duration
		shown float64
	}{{0, 0}, {2500 * time.Millisecond, 2.5}, {40 * time.Millisecond, 0.04}, {0, 0}} {
		e.SetWatch("m", exporter.Watch{Mode: "tracking", Delay: c.delay})
		want(t, e, map[string]float64{`watch_delay_seconds{target="m"}`: c.shown})
	}
}

// TestWhatTheWatchTellsIsInTheNextScrape, though nothing is published for it.
func TestWhatTheWatchTellsIsInTheNextScrape(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.ObserveWatch(sweep(0, lock("a", "a:0")).Update()) // before the first sweep: nothing to compare with
	want(t, e, map[string]float64{`locks{class="a",library="token",target="m"}`: absent})
	e.ObserveSweep(sweep(0, lock("a", "a:1")))
	later := func(l *locksteward.Lock) {
		l.At = t0.Add(time.Second)
		l.History.FirstSeen, l.History.LastSeen = l.At, l.At
	}
	e.ObserveWatch(sweep(1, lock("a", "a:2", later)).Update())
	want(t, e, map[string]float64{
		`locks{class="a",library="token",target="m"}`: 2,
		`lock_acquires_total{class="a",target="m"}`:   1,
	})
	gone := sweep(2).Update()
	gone.Endings = []locksteward.Ending{{Lock: lock("a", "a:2", later), How: locksteward.EndedExpired, At: t0.Add(2 * time.Second)}}
	e.ObserveWatch(gone)
	want(t, e, map[string]float64{
		`locks{class="a",library="token",target="m"}`: 1,
		`locks_expired_total{class="a",target="m"}`:   1,
	})
}
