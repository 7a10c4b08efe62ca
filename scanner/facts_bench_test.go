package scanner

import (
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// BenchmarkSurvey is what a sweep of 100,000 locks of ours pays beyond its locks:
// fences, longest lease and silence.
func BenchmarkSurvey(b *testing.B) {
	locks := make([]locksteward.Lock, 100_000)
	for i := range locks {
		locks[i] = ours(fmt.Sprintf("lock:%d", i), fmt.Sprintf("claim-%d", i), origin.UnixMicro()+int64(i), time.Minute)
		locks[i].Holder.Instance = fmt.Sprintf("I%d", i%1000)
	}
	f := newFacts()
	sweep := round(origin, false, locks...)
	passes := []source.Part{answer("a", "run_id:r role:master uptime_in_seconds:900000")}
	prefix := func(string) string { return "locksteward:" }
	h := hear(0)
	b.ReportAllocs()
	for b.Loop() {
		observed(&f.servers, sweep, passes, nil)
		f.processes.silent(named(sweep), h)
		f.fences.observe(sweep, prefix)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "µs/1000locks")
}
