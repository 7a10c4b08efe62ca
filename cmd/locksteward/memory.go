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
	// in at most 128 MiB.
	memoryFloor = 112 << 20
	// memoryRoom is the room above what is alive, in parts of it: with 0.15, of which
	// what is beside the heap took its part, the collector had two thirds of the
	// processor time of a sweep.
	memoryRoom = 0.2
	// memoryPlateau is where the room does not grow, memoryCalm where it begins to
	// again, by memorySlope until it is memoryMost: a storm of 100,000 findings is in
	// between, and in at most 256 MiB. Beyond it are more locks than that is promised
	// for, and an agent that watches 2,000 changes a second: with 24 MiB of room at
	// 157 MiB alive, of which the collector itself keeps a part, it collected at each
	// 9 MiB and had half of the agent's processor time.
	memoryPlateau = 100 << 20
	memoryCalm    = 125 << 20
	memorySlope   = 1.0
	memoryMost    = 0.5
)

// memoryEvery is how often the limit follows what is alive, which grows by half
// within the seconds of a sweep.
const memoryEvery = time.Second

// limitMemory keeps the soft limit at what is alive and some room, until the
// returned function is called. An operator who set GOMEMLIMIT or GOGC knows better, and is
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
				debug.SetMemoryLimit(memoryLimit(memoryUse()))
			}
		}
	}()
	return func() {
		cancel()
		<-done
		debug.SetMemoryLimit(before)
	}
}

func memoryLimit(live, beside uint64) int64 {
	alive := float64(live)
	room := min(alive, memoryPlateau) * memoryRoom
	room = min(room+max(0, alive-memoryCalm)*memorySlope, alive*memoryMost)
	return int64(max(memoryFloor, alive+room+float64(beside)))
}

// memoryUse is what the last collection left alive, and what the program has
// beside its heap: stacks and the runtime's own.
func memoryUse() (live, beside uint64) {
	names := []string{
		"/gc/heap/live:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/objects:bytes",
		"/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes",
	}
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return samples[i].Value.Uint64()
	}
	heap := value(2) + value(3) + value(4) + value(5)
	return value(0), value(1) - min(value(1), heap)
}
