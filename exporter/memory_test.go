package exporter_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
)

// TestGaugesAreThoseOfTheLocks drives random looks, by sweeps, direct reads and a
// watch, and compares the gauges, which are kept up to date lock by lock, with
// those of another exporter that sees the same locks at once.
func TestGaugesAreThoseOfTheLocks(t *testing.T) {
	t.Parallel()
	looks := []func(*exporter.Exporter, locksteward.Sweep){
		(*exporter.Exporter).ObserveSweep,
		func(e *exporter.Exporter, s locksteward.Sweep) { // cut: it takes nothing away
			s.Masters[0].Complete = false
			e.ObserveSweep(s)
		},
		func(e *exporter.Exporter, s locksteward.Sweep) {
			e.ObserveRecheck(s.Update())
		},
		func(e *exporter.Exporter, s locksteward.Sweep) {
			e.ObserveWatch(s.Update())
			e.SetWatch("m", exporter.Watch{})
		},
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 11))
		e := newExporter(t, exporter.Config{TopLocks: 4}, "a", "b")
		e.ObserveSweep(sweep(0))
		live := map[string]locksteward.Lock{}
		for n := range 40 {
			how := r.IntN(len(looks))
			s := someLooks(r, n+1, live, how > 0)
			looks[how](e, s)
			whole := newExporter(t, exporter.Config{TopLocks: 4}, "a", "b")
			whole.ObserveSweep(sweep(n+1, slices.Collect(maps.Values(live))...))
			got, wanted := lockGauges(t, e), lockGauges(t, whole)
			if !maps.Equal(got, wanted) {
				t.Fatalf("seed %d, step %d (look %d):\n%v, want\n%v", seed, n, how, got, wanted)
			}
		}
	}
}

// someLooks changes what is live and returns a sweep that reports it; of some of
// the rest it says nothing if that is allowed.
func someLooks(r *rand.Rand, n int, live map[string]locksteward.Lock, silent bool) locksteward.Sweep {
	s, now := sweep(n), later(n)
	for i := range 12 {
		key := fmt.Sprintf("k%d", i)
		l, there := live[key]
		switch {
		case there && r.IntN(4) == 0:
			s.Endings = append(s.Endings, locksteward.Ending{Lock: l, How: locksteward.EndedReleased, At: now})
			delete(live, key)
			continue
		case there && silent && r.IntN(3) == 0, !there && r.IntN(2) == 0:
			continue
		case !there || r.IntN(6) == 0: // taken, or taken by another
			l = lock([]string{"a", "b", "gone"}[r.IntN(3)], key, heldSince(now.Add(-time.Duration(r.IntN(100))*time.Second)))
			if r.IntN(2) == 0 {
				expect := time.Duration(r.IntN(2)) * 30 * time.Second
				claimed(fmt.Sprint(key, n), now.Add(-time.Duration(r.IntN(90))*time.Second), locksteward.Claim{Expect: expect})(&l)
			}
			if r.IntN(5) == 0 {
				noTTL(&l)
			}
		}
		if r.IntN(3) == 0 {
			l.Waiters = r.IntN(4) - 1
		}
		at(now)(&l)
		live[key] = l
		s.Locks = append(s.Locks, l)
	}
	return s
}

// lockGauges are the gauges of locks in a scrape. Which of several locks of the
// same age has a series is not reported.
func lockGauges(t *testing.T, e *exporter.Exporter) map[string]float64 {
	t.Helper()
	out := scrape(t, e)
	maps.DeleteFunc(out, func(name string, _ float64) bool {
		return !strings.HasPrefix(name, "locksteward_locks") && !strings.HasPrefix(name, "locksteward_lock_longest") &&
			!strings.HasPrefix(name, "locksteward_lock_waiters") || strings.Contains(name, "_total")
	})
	return out
}

// TestKeysOfTwoDatabasesAreTwoLocks, though their names are alike.
// fault: 59
func TestKeysOfTwoDatabasesAreTwoLocks(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	inDB := func(db int) func(*locksteward.Lock) { return func(l *locksteward.Lock) { l.DB = db } }
	e.ObserveSweep(sweep(0, lock("a", "a:1"), lock("a", "a:1", inDB(1)), lock("a", "a:1", inDB(2))))
	want(t, e, map[string]float64{`locks{class="a",library="token",target="m"}`: 3})
	s := sweep(1, lock("a", "a:1", inDB(2)))
	e.ObserveSweep(s)
	want(t, e, map[string]float64{`locks{class="a",library="token",target="m"}`: 1})
}

// TestManyLocksAreCountedOnce has so many that hashes of 32 bits would meet.
func TestManyLocksAreCountedOnce(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{}, "a")
	s := sweep(0, many("a", 100_000)...)
	for range 2 {
		e.ObserveSweep(s)
		want(t, e, map[string]float64{
			`locks{class="a",library="token",target="m"}`: 100_000,
			`lock_acquires_total{class="a",target="m"}`:   0,
		})
	}
	e.ObserveSweep(sweep(1, s.Locks[:1]...))
	want(t, e, map[string]float64{`locks{class="a",library="token",target="m"}`: 1})
}
