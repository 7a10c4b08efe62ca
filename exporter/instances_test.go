package exporter_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// process is a heartbeat that reports classes.
func process(id string, started time.Time, counts map[string]locksteward.Counts) locksteward.Instance {
	return locksteward.Instance{ID: id, Started: started, Counts: counts}
}

func received(n int, all ...locksteward.Instance) locksteward.Sweep {
	s := sweep(n)
	s.Instances = all
	return s
}

func TestHeartbeatsAreCountedFromTheFirstLook(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a", "b")
	old := t0.Add(-time.Hour)
	counts := func(n int64) map[string]locksteward.Counts {
		return map[string]locksteward.Counts{
			"a": {Acquired: n, Failed: 2 * n, Contended: 7 * n, Renewed: 3 * n, RenewFailures: 4 * n, Lost: 5 * n},
		}
	}
	e.ObserveSweep(received(0, process("p1", old, counts(100))))
	all := map[string]float64{
		`lock_acquires_total{class="a",target="m"}`:         0,
		`lock_acquire_failures_total{class="a",target="m"}`: 0,
		`lock_renewals_total{class="a",target="m"}`:         0,
		`lock_renewal_failures_total{class="a",target="m"}`: 0,
		`locks_lost_total{class="a",target="m"}`:            0,
		`lock_acquire_failures_total{class="b",target="m"}`: absent,
		`lock_renewal_failures_total{class="b",target="m"}`: absent,
	}
	want(t, e, all)
	// One that began since tells all of itself, one that was only missed does not.
	e.ObserveSweep(received(1, process("p1", old, counts(101)), process("p2", later(1), counts(2)), process("p3", old, counts(50))))
	for name, times := range map[string]float64{
		"lock_acquires_total": 1, "lock_acquire_failures_total": 2, "lock_renewals_total": 3, "lock_renewal_failures_total": 4, "locks_lost_total": 5,
	} {
		all[name+`{class="a",target="m"}`] = 3 * times
	}
	want(t, e, all)
	// A process that was not met for a sweep goes on; counts that go back are
	// nobody's.
	e.ObserveSweep(received(2, process("p2", later(1), counts(1))))
	want(t, e, all)
	e.ObserveSweep(received(3, process("p1", old, counts(102)), process("p4", old, nil)))
	all[`lock_acquires_total{class="a",target="m"}`] = 4
	all[`lock_acquire_failures_total{class="a",target="m"}`] = 8
	all[`lock_renewals_total{class="a",target="m"}`] = 12
	all[`lock_renewal_failures_total{class="a",target="m"}`] = 16
	all[`locks_lost_total{class="a",target="m"}`] = 20
	want(t, e, all)
	// Names that the configuration does not know, and none.
	e.ObserveSweep(received(4, process("p5", later(4), map[string]locksteward.Counts{"unknown": {Acquired: 1}, "_other": {Acquired: 2}, "": {Acquired: 4}})))
	want(t, e, map[string]float64{
		`lock_acquires_total{class="_other",target="m"}`:  3,
		`lock_acquires_total{class="default",target="m"}`: 4,
		`lock_acquires_total{class="a",target="m"}`:       4,
	})
}

// TestTwoSourcesAreNotAddedUp: what sweeps see of our library and what its
// processes tell is the same work.
func TestTwoSourcesAreNotAddedUp(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	e.ObserveSweep(received(0, process("p", t0, map[string]locksteward.Counts{"a": {}})))
	s := sweep(1,
		lock("a", "a:1", claimed("c1", later(1), locksteward.Claim{Renewals: 2})),
		lock("a", "a:2", claimed("c2", later(1), locksteward.Claim{})),
		lock("a", "a:3", heldSince(later(1))), // of another library
	)
	s.Losses = []locksteward.Loss{{Target: "m", Key: "a:4", Class: "a", How: locksteward.EndedExpired, Claim: locksteward.Claim{ID: "c4"}}}
	s.Instances = []locksteward.Instance{process("p", t0, map[string]locksteward.Counts{"a": {Acquired: 10, Failed: 4, Renewed: 1, Lost: 1}})}
	e.ObserveSweep(s)
	want(t, e, map[string]float64{
		`lock_acquires_total{class="a",target="m"}`:         11,
		`lock_acquire_failures_total{class="a",target="m"}`: 4,
		`lock_renewals_total{class="a",target="m"}`:         2,
		`locks_lost_total{class="a",target="m"}`:            1,
	})
}
