package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// BenchmarkEvaluate judges a complete sweep of 100,000 locks, 1 in 100 of them
// without TTL and one in ten with metadata: the aim is below 200 ms.
func BenchmarkEvaluate(b *testing.B) {
	var locks []locksteward.Lock
	for i := range 100_000 {
		key := fmt.Sprintf("lock:order:%06d", i)
		l := lockAt(key, t0, ofClass("orders"))
		switch {
		case i%100 == 0:
			noTTL(&l)
		case i%10 == 1:
			l.Library = "locksteward"
			l.Claim = &locksteward.Claim{ID: key, Acquired: t0, Renewed: t0, TTL: time.Minute, RenewEvery: 20 * time.Second}
		}
		locks = append(locks, l)
	}
	classes := []class.Class{{Name: "orders", Match: []string{"lock:order:*"}, Expect: time.Hour}}
	e := newEngine(b, nil, classes)
	e.Evaluate(sweepAt(t0, locks...))
	sweep := sweepAt(after(RecheckAfter), locks...)
	b.ReportAllocs()
	for b.Loop() {
		e.Evaluate(sweep)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/sweep")
}
