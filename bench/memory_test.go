package bench

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// maxPeak is how much heap a scanner with 100 k locks may reach (of
// the whole agent), with the soft limit that makes the collector work for it.
const (
	maxPeak   = 128 << 20
	softLimit = 100 << 20
)

// BenchmarkMemory100k sweeps 100 k locks, a quarter of them of our own library,
// and reports what the live table keeps of one, what one sweep's value weighs,
// and the highest heap that three sweeps in a row reach.
func BenchmarkMemory100k(b *testing.B) {
	const locks = 100_000
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(softLimit))
	srv := testredis.Start(b)
	client := srv.Client(b)
	load(b, client, 0, locks*3/4)
	loadOurs(b, client, locks/4)
	for b.Loop() {
		s := newScanner(b, srv.URL())
		before := heap()
		stop := make(chan struct{})
		peak := make(chan uint64)
		go watchHeap(stop, peak)
		got, err := s.Sweep(b.Context())
		for range 2 {
			if err == nil {
				got.Locks = nil // as an agent does: one sweep at a time
				got, err = s.Sweep(b.Context())
			}
		}
		if err != nil || len(got.Locks) != locks {
			b.Fatalf("%d locks, %v", len(got.Locks), err)
		}
		close(stop)
		top := <-peak
		both := heap() - before
		runtime.KeepAlive(got)
		got.Locks = nil
		table := heap() - before
		runtime.KeepAlive(s)
		b.ReportMetric(float64(table)/locks, "table-B/lock")
		b.ReportMetric(float64(both-table)/locks, "sweep-B/lock")
		b.ReportMetric(float64(top)/(1<<20), "peak-MiB")
		b.ReportMetric(0, "ns/op")
		if top > maxPeak {
			b.Errorf("the heap reached %d MiB, promised %d", top>>20, maxPeak>>20)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func watchHeap(stop <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var top uint64
	for {
		select {
		case <-stop:
			peak <- top
			return
		case <-tick.C:
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapAlloc)
		}
	}
}

func loadOurs(b *testing.B, client *redis.Client, n int) {
	b.Helper()
	ctx := b.Context()
	now := time.Now().UnixMilli()
	pipe := client.Pipeline()
	for i := range n {
		key := fmt.Sprintf("lock:ours:%d", i)
		m := record.Meta{
			V: record.Version, ID: fmt.Sprintf("01J%023d", i), Session: fmt.Sprintf("session-%d", i), Instance: fmt.Sprintf("instance-%d", i%100),
			App: "billing", Host: fmt.Sprintf("host-%d", i%100), PID: 1000 + i%100, Class: "orders", Purpose: "charge card",
			Acquired: now, TTL: 3_600_000, RenewEvery: 1_200_000, Renewed: now, Expect: 3_600_000, Fence: now*1000 + int64(i), Holds: 1,
		}
		pipe.Set(ctx, key, record.Value(m.ID, "secret-secret-secret-secret"), time.Hour)
		meta := record.Companion(record.DefaultPrefix, record.KindHold, key)
		pipe.Set(ctx, meta, m.Encode(), 0)
		pipe.PExpire(ctx, meta, time.Hour+record.Grace)
		if pipe.Len() >= 9000 || i == n-1 {
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
