package bench

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// The promise for the whole program.
const (
	maxAgent  = 128.0 // MiB
	maxSeries = 2000
)

// BenchmarkAgent1M lets the program sweep 250 k, 500 k and 1 M ordinary keys
// beside 100 k healthy locks, a quarter of them of our own library, and reports
// the most memory of its own that it was seen to have (without the pages of its
// file, which the kernel may drop at any time), its series, and the time of a sweep
// for each number of keys.
func BenchmarkAgent1M(b *testing.B) {
	const locks = 100_000
	binary := buildAgent(b)
	for b.Loop() {
		srv := testredis.Start(b)
		client := srv.Client(b)
		loadHealthy(b, client, locks*3/4)
		loadOurs(b, client, locks/4)
		table := results.Table{
			Title:  "100 k locks",
			Header: []string{"Other keys", "a sweep, s", "µs per key", "own memory at most, MiB", "with its file's pages, MiB", "series"},
			Note:   "Sweeps without throttle, the fastest of five after the first: what they cost, not how long the default budget makes them. Promised: 128 MiB, 2,000 series.",
		}
		from := 0
		for _, keys := range []int{250_000, 500_000, 1_000_000} {
			loadFrom(b, client, from, keys)
			from = keys
			row := measureSize(b, srv, binary, keys, locks)
			table.Rows = append(table.Rows, row)
		}
		writeFigures(b, client, "size", "The size of an agent", "BenchmarkAgent1M",
			"The whole program as a process of its own, watch included; memory is what the kernel counts as resident.", table)
	}
}

func measureSize(b *testing.B, srv *testredis.Server, binary string, keys, locks int) []string {
	b.Helper()
	a := startAgent(b, binary, srv.URL(), "    pace: {idle: 80%, busy: 80%}", "    schedule: '@every 1s'", "    jitter: 1ms")
	defer a.stop()
	ended := func(m map[string]float64) float64 {
		return sum(m, "locksteward_sweep_last_success_timestamp_seconds")
	}
	last := a.await(5*time.Minute, "first sweep", func(m map[string]float64) bool { return ended(m) > 0 })
	best := time.Hour
	most, _ := a.memory()
	for range 5 {
		before := ended(last)
		last = a.await(5*time.Minute, "a further sweep", func(m map[string]float64) bool {
			own, _ := a.memory()
			most = max(most, own)
			return ended(m) > before
		})
		best = min(best, time.Duration(sum(last, "locksteward_sweep_duration_seconds")*float64(time.Second)))
	}
	m := a.samples(b.Context())
	if n := sum(m, "locksteward_locks"); int(n) != locks {
		b.Fatalf("%g locks, want %d", n, locks)
	}
	_, file := a.memory()
	name := strconv.Itoa(keys/1000) + "k"
	b.ReportMetric(best.Seconds(), name+"-sweep-s")
	b.ReportMetric(most, name+"-peak-MiB")
	b.ReportMetric(float64(len(m)), name+"-series")
	b.ReportMetric(0, "ns/op")
	if most > maxAgent || len(m) > maxSeries {
		b.Errorf("%d keys: %.0f MiB, %d series; promised %.0f and %d", keys, most, len(m), maxAgent, maxSeries)
	}
	all := keys + locks + locks/4
	return []string{
		results.Number(float64(keys)), fmt.Sprintf("%.2f", best.Seconds()), fmt.Sprintf("%.2f", best.Seconds()*1e6/float64(all)),
		fmt.Sprintf("%.0f", most), fmt.Sprintf("%.0f", most+file), strconv.Itoa(len(m)),
	}
}

// loadHealthy writes locks with fresh tokens and a TTL that no rule minds.
func loadHealthy(b *testing.B, client *redis.Client, n int) {
	b.Helper()
	ctx := b.Context()
	pipe := client.Pipeline()
	for i := range n {
		pipe.Set(ctx, fmt.Sprintf("lock:free:%d", i), fmt.Sprintf("0d9f3f7e-52f9-4a38-9a53-%012x", i), time.Hour)
		if pipe.Len() == 10_000 || i == n-1 {
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
