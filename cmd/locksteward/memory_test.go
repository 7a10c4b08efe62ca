package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// What is alive always fits, with room; what is small costs the floor.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int64{0: memoryFloor, 80 << 20: memoryFloor, 100 << 20: 130 << 20, 1 << 30: 1238 << 20} {
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
