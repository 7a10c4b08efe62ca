package redis

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// Threads that compete for too few processors wait, and that is counted.
func TestRunDelay(t *testing.T) {
	if len(runDelays()) == 0 {
		t.Skip("the kernel does not say how long a thread waits")
	}
	before, end := runDelays(), time.Now().Add(10*time.Second)
	for runDelay(before, runDelays()) < 10*time.Millisecond {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in ten seconds", runDelay(before, runDelays()))
		}
		var wg sync.WaitGroup
		for range 4 * runtime.NumCPU() {
			wg.Go(func() {
				runtime.LockOSThread()
				for began := time.Now(); time.Since(began) < 20*time.Millisecond; { // a processor is kept busy
				}
			})
		}
		wg.Wait()
	}
}
