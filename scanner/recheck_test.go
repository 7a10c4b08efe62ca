package scanner_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// A recheck reads that a key is gone, and goes on reading what belongs to other locks.
// A hold that begins meanwhile, and that the watch has stored, stays.
func TestRecheckLeavesAHoldThatTheWatchStoredMeanwhile(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c, ctx := srv.Client(t), t.Context()
	proxy := testredis.NewProxy(t, srv.Addr())
	w := tracked(t, fast("redis://"+proxy.Addr()+"/0"))
	heartbeat(t, c, "i1")
	// Who waits for it and its heartbeat are read apart, each after another delay.
	take(t, c, "lock:ours", record.Meta{ID: "1", Instance: "i1"}, time.Hour)
	w.awaitLock("lock:ours")
	const latency = 150 * time.Millisecond
	for round := range 4 {
		old, next := fmt.Sprint("old", round), fmt.Sprint("next", round)
		must(t, c.Set(ctx, "lock:x", old, time.Hour).Err())
		w.awaitLock("lock:x")
		before, _ := w.lock("lock:x")
		ours, _ := w.lock("lock:ours")
		ended := len(w.ended("lock:x"))
		must(t, c.Del(ctx, "lock:x").Err())
		w.awaitEnd("lock:x", ended+1)

		proxy.Delay(latency)
		asked := calls(t, c, "type")
		type result struct {
			update locksteward.Update
			err    error
		}
		done := make(chan result, 1)
		go func() {
			update, err := w.s.Recheck(context.WithoutCancel(ctx), []locksteward.Lock{ours, before})
			done <- result{update, err}
		}()
		testredis.Eventually(t, soon, func() bool { return calls(t, c, "type") != asked }, "the recheck does not ask for the key")
		must(t, c.Set(ctx, "lock:x", next, time.Hour).Err())
		w.awaitLock("lock:x")
		got := <-done
		proxy.Delay(0)
		must(t, got.err)
		if len(got.update.Endings) != 0 {
			t.Errorf("round %d: the recheck ends %+v", round, got.update.Endings)
		}
		if !slices.Contains(names(w.s.Table().Locks()), "lock:x") {
			t.Errorf("round %d: a lock that is held is not in the table", round)
		}
		ended = len(w.ended("lock:x"))
		must(t, c.Del(ctx, "lock:x").Err())
		w.awaitEnd("lock:x", ended+1)
	}
}
