package bench

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/bench/results"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// The promise: a sweep of 1 M keys with 10 k locks costs at most
// this much of a bare SCAN loop.
const (
	maxTimeRatio = 1.35
	maxCPURatio  = 1.25
)

// rounds is how often each is measured at least: a median of one is none.
const rounds = 5

// BenchmarkSweep1M sweeps 1 M ordinary keys and 10 k locks, unthrottled, in turn
// with a bare SCAN loop, and reports the medians of wall time and server CPU of
// both and their ratios, for the first sweep of a scanner (a one-off scan) and
// for a later one ("again"). It fails when the first breaks the promise.
func BenchmarkSweep1M(b *testing.B) {
	srv := testredis.Start(b)
	client := srv.Client(b)
	load(b, client, 1_000_000, 10_000)
	var first, later, bare runs
	scanLoop(b, client) // so that neither pays for first reads
	round := func() {
		s := newScanner(b, srv.URL())
		sweep := func() {
			got, err := s.Sweep(b.Context())
			if err != nil || !got.Complete() || len(got.Locks) != 10_000 {
				b.Fatalf("sweep: complete %v, %d locks, %v", got.Complete(), len(got.Locks), err)
			}
		}
		bare.add(measure(b, client, func() { scanLoop(b, client) }))
		first.add(measure(b, client, sweep))
		bare.add(measure(b, client, func() { scanLoop(b, client) }))
		later.add(measure(b, client, sweep))
	}
	for b.Loop() {
		for range rounds {
			round()
		}
	}
	scan, one, more := bare.median(), first.median(), later.median()
	timeRatio, cpuRatio := one.took/scan.took, one.cpu/scan.cpu
	for name, value := range map[string]float64{
		"scan-ms": scan.took, "scan-cpu-ms": scan.cpu,
		"sweep-ms": one.took, "sweep-cpu-ms": one.cpu, "time-ratio": timeRatio, "cpu-ratio": cpuRatio,
		"again-time-ratio": more.took / scan.took, "again-cpu-ratio": more.cpu / scan.cpu,
		"ns/op": 0,
	} {
		b.ReportMetric(value, name)
	}
	cells := func(what string, c cost) []string {
		return []string{
			what, results.Number(c.took), results.Number(c.cpu),
			results.Number(c.took / scan.took), results.Number(c.cpu / scan.cpu),
		}
	}
	writeFigures(b, client, "sweep", "A sweep beside a bare SCAN", "BenchmarkSweep1M",
		"1 M ordinary keys and 10 k locks of four kinds, no throttle, in turn with a loop of `SCAN COUNT 1000` that reads nothing else.",
		results.Table{
			Title:  fmt.Sprintf("Medians of %d rounds", len(first)),
			Header: []string{"What", "time, ms", "server CPU, ms", "time, ×", "CPU, ×"},
			Rows:   [][]string{cells("bare SCAN", scan), cells("first sweep of a scanner", one), cells("later sweep", more)},
			Note:   fmt.Sprintf("Promised of the first: at most %.2f times the time and %.2f times the server CPU.", maxTimeRatio, maxCPURatio),
		})
	if timeRatio > maxTimeRatio || cpuRatio > maxCPURatio {
		b.Errorf("sweep costs %.2f times the time and %.2f times the server CPU of a bare SCAN; promised %.2f and %.2f",
			timeRatio, cpuRatio, maxTimeRatio, maxCPURatio)
	}
}

func newScanner(b *testing.B, url string) *scanner.Scanner {
	b.Helper()
	conn, err := connect.Open(connect.Config{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
	})
	classes, err := class.NewSet([]class.Class{
		{Name: "orders", Match: []string{"lock:order:*"}, Expect: 30 * time.Second},
		{Name: "jobs", Match: []string{"job:*:lock"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	src, err := redissource.New(conn, redissource.Options{Log: zap.NewNop(), Digest: locksteward.NewDigestKey(), Unpaced: true})
	if err != nil {
		b.Fatal(err)
	}
	s, err := scanner.New(zap.NewNop(), locksteward.Target{Name: "bench", Mode: locksteward.ModeStandalone}, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// load writes keys that are no locks, under names as applications have them,
// and locks of several kinds.
func load(b *testing.B, client *redis.Client, keys, locks int) {
	b.Helper()
	loadFrom(b, client, 0, keys)
	ctx := b.Context()
	pipe := client.Pipeline()
	for i := range locks {
		id := strconv.Itoa(i)
		switch i % 4 {
		case 0:
			pipe.Set(ctx, "lock:order:"+id, "1", 0)
		case 1:
			pipe.Set(ctx, "lock:order:"+id, "0d9f3f7e-52f9-4a38-9a53-"+fmt.Sprintf("%012x", i), time.Hour)
		case 2:
			pipe.Set(ctx, "job:"+id+":lock", "worker-7", time.Hour)
		default:
			pipe.HSet(ctx, "lock:order:"+id, "5f3759df-a1b2-c3d4-e5f6-0123456789ab:42", "1")
			pipe.PExpire(ctx, "lock:order:"+id, time.Hour)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		b.Fatal(err)
	}
}

// loadFrom writes keys that are no locks: those numbered from up to, not
// including, to.
func loadFrom(b *testing.B, client *redis.Client, from, to int) {
	b.Helper()
	ctx := b.Context()
	pipe := client.Pipeline()
	names := []string{"user:%d:profile", "session:%d", "cart:%d:items", "product:%d:stock", "feed:{%d}:page"}
	for i := from; i < to; i++ {
		pipe.Set(ctx, fmt.Sprintf(names[i%len(names)], i), "v", 0)
		if pipe.Len() == 10_000 || i == to-1 {
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func scanLoop(b *testing.B, client *redis.Client) {
	b.Helper()
	n := 0
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(b.Context(), cursor, "", 1000).Result()
		if err != nil {
			b.Fatal(err)
		}
		n += len(keys)
		if next == 0 {
			break
		}
		cursor = next
	}
	if n < 1_010_000 {
		b.Fatalf("SCAN returned %d keys", n)
	}
}

// cost is what one run took, in milliseconds of wall time and of server CPU.
type cost struct{ took, cpu float64 }

type runs []cost

func (r *runs) add(c cost) { *r = append(*r, c) }

// median is robust against what else the machine does.
func (r runs) median() cost {
	pick := func(of func(cost) float64) float64 {
		list := make([]float64, len(r))
		for i, c := range r {
			list[i] = of(c)
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	return cost{took: pick(func(c cost) float64 { return c.took }), cpu: pick(func(c cost) float64 { return c.cpu })}
}

func measure(b *testing.B, client *redis.Client, f func()) cost {
	b.Helper()
	cpu := serverCPU(b, client)
	began := time.Now()
	f()
	took := time.Since(began)
	return cost{took: float64(took.Microseconds()) / 1000, cpu: serverCPU(b, client) - cpu}
}

// serverCPU returns the server's CPU time so far, user and system, in ms.
func serverCPU(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	info, err := client.InfoMap(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		v, err := strconv.ParseFloat(info["CPU"][field], 64)
		if err != nil {
			b.Fatalf("%s: %v", field, err)
		}
		total += v * 1000
	}
	return total
}
