package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The program's memory: Go's collector by itself lets the heap grow to twice what
// is alive, which is most of what a large target would cost. A soft limit makes it
// work earlier instead; it is raised with what is alive, so that the collector
// never works for nothing.
const (
	// memoryFloor is the soft limit as long as that is enough: 100 k healthy locks
	// in at most 128 MiB (DESIGN §11).
	memoryFloor = 112 << 20
	// memoryRoom is the room above what is alive, in parts of it.
	memoryRoom = 0.15
)

// memoryEvery is how often the limit follows what is alive.
const memoryEvery = 5 * time.Second

// limitMemory keeps the soft limit at what is alive and some room, until the
// returned function is called. Whoever set GOMEMLIMIT or GOGC knows better, and is
// left alone.
func limitMemory(ctx context.Context) (stop func()) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(memoryFloor)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(memoryEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				debug.SetMemoryLimit(memoryLimit(liveHeap()))
			}
		}
	}()
	return func() {
		cancel()
		<-done
		debug.SetMemoryLimit(before)
	}
}

func memoryLimit(live uint64) int64 {
	return int64(max(memoryFloor, float64(live)*(1+memoryRoom)))
}

// liveHeap is what the last collection left.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
