package chaos_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// Fault 28: ten thousand fences before a crash that takes the end of the append
// only file, and ten thousand after it: no lock gets a fence that is not above
// all that it had, though the counters on the server are older.
// fault: 28
func TestTenThousandFencesOverAOFLoss(t *testing.T) {
	t.Parallel()
	const fences, locks = 10_000, 16
	b := topologies["aof"](t)
	b.locks = nil
	for i := range locks {
		b.locks = append(b.locks, fmt.Sprintf("lock:%d", i))
	}
	c := b.open(0, lock.Options{Timeout: 20 * time.Second})
	var last [locks]int64
	round := func(half func()) {
		t.Helper()
		var taken atomic.Int64
		var all sync.WaitGroup
		for i, key := range b.locks {
			all.Go(func() {
				for range fences / locks {
					// What was released after the end of the file is held again, for a lease.
					h, err := c.Acquire(t.Context(), key, lock.Lease{TTL: 5 * time.Second, Wait: time.Minute})
					if err != nil {
						t.Errorf("acquire %s: %v", key, err)
						return
					}
					if h.Fence() <= last[i] {
						t.Errorf("%s: fence %d after %d", key, h.Fence(), last[i])
					}
					last[i] = max(last[i], h.Fence())
					if err := h.Release(t.Context()); err != nil {
						t.Errorf("release %s: %v", key, err)
						return
					}
					if taken.Add(1) == fences/2 {
						half()
					}
				}
			})
		}
		all.Wait()
		if n := taken.Load(); n != fences {
			t.Fatalf("%d fences, want %d", n, fences)
		}
	}
	file := aofFile(b, b.setting("dir"))
	var kept int64
	round(func() {
		info, err := os.Stat(file)
		if err != nil {
			t.Error(err)
			return
		}
		kept = info.Size()
	})
	b.srv.Kill()
	// The end may be in the middle of a command.
	if err := os.Truncate(file, kept+17); err != nil {
		t.Fatal(err)
	}
	b.srv.Restart()
	for i, key := range b.locks {
		text, err := b.admin.Get(context.Background(), record.FenceKey(record.DefaultPrefix, key)).Result()
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := strconv.ParseInt(text, 10, 64); err != nil || stored >= last[i] {
			t.Fatalf("%s: the counter is %q, %v, after fence %d: nothing was lost, and this tests nothing", key, text, err, last[i])
		}
	}
	round(func() {})
}
