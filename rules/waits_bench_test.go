package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// crowded is a complete sweep of n locks, each with a waiter whose session holds
// the next one; the last waits for the first if it is a round.
func crowded(n int, round bool, at time.Time) locksteward.Sweep {
	s := sweepAt(at)
	for i := range n {
		l := ourLock("redis", fmt.Sprintf("k%06d", i), fmt.Sprint("c", i), fmt.Sprint("s", i), t0)
		if i > 0 || round {
			l.Waiters = 1
			s.Waiters = append(s.Waiters, waiterOf("redis", l.Key, fmt.Sprint("w", i), fmt.Sprint("s", (i+n-1)%n), t0))
		} else {
			l.Waiters = 0
		}
		s.Locks = append(s.Locks, l)
	}
	return s
}

// TestLongChains: a chain of 20,000 waits is no deadlock, a round is one, and
// both are found without a deep stack.
func TestLongChains(t *testing.T) {
	t.Parallel()
	for _, round := range []bool{false, true} {
		e := newEngine(t, nil, nil)
		e.Evaluate(crowded(20_000, round, t0))
		ts := cyclesOf(e.Evaluate(crowded(20_000, round, after(time.Second))))
		if round != (len(ts) == 1) {
			t.Fatalf("a round: %v, reported %d", round, len(ts))
		}
		if round && len(ts[0].Finding.Evidence) > maxCycleLines+3 {
			t.Errorf("%d lines of evidence", len(ts[0].Finding.Evidence))
		}
	}
}

// BenchmarkWaits judges sweeps of which every lock is waited for: the cost of a
// waiter must not grow with their number.
func BenchmarkWaits(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := newEngine(b, nil, nil)
			e.Evaluate(crowded(n, true, t0))
			s := crowded(n, true, after(time.Second))
			e.Evaluate(s)
			b.ReportAllocs()
			for b.Loop() {
				e.Evaluate(s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/waiter")
		})
	}
}
