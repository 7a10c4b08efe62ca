package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// What is alive always fits, with room; what is small costs the floor.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int64{
		0: memoryFloor, 80 << 20: memoryFloor, 100 << 20: 130 << 20, 125 << 20: 155 << 20, 140 << 20: 185 << 20, 175 << 20: 255 << 20, 1 << 30: 1546 << 20,
	} {
		if got := memoryLimit(live, 10<<20); got < want-1 || got > want+1<<20 {
			t.Errorf("%d MiB alive: limit %d, want %d", live>>20, got, want)
		}
	}
	runtime.GC()
	if live, beside := memoryUse(); live == 0 || beside == 0 {
		t.Errorf("%d bytes alive and %d beside the heap: one is not known", live, beside)
	}
}

func TestMemoryLimitIsPutBack(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	stop := limitMemory(t.Context())
	if got := debug.SetMemoryLimit(-1); got != memoryFloor {
		t.Errorf("limit %d", got)
	}
	stop()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("limit %d afterwards, was %d", got, before)
	}
}

// What is alive of an agent that has more locks than its size is promised for leaves
// the collector room: a third of it, and never less when there is more.
func TestMemoryRoom(t *testing.T) {
	t.Parallel()
	room := func(live uint64) uint64 { return uint64(memoryLimit(live<<20, 0))>>20 - live }
	for live := uint64(95); live < 2000; live++ {
		if got, next := room(live), room(live+1); next+1 < got {
			t.Errorf("%d MiB alive: room of %d MiB, and %d MiB with one more", live, got, next)
		}
		if got := room(live); live >= 157 && got*100 < live*32 || got*2 > live+2 {
			t.Errorf("%d MiB alive: room of %d MiB", live, got)
		}
	}
}
