package scanner_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func orphanKeys(sweep locksteward.Sweep) []string {
	out := []string{}
	for _, o := range sweep.Orphans {
		out = append(out, o.Key)
	}
	return out
}

// What is left of a fair lock that is gone is reported; what its waiters still need,
// and fences, are not.
func TestOrphansAreReported(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	now, err := c.Time(ctx).Result()
	must(t, err)
	past, future := float64(now.Add(-time.Minute).UnixMilli()), float64(now.Add(time.Hour).UnixMilli())
	holder := "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37"
	for name, deadline := range map[string]float64{"gone": past, "held:lock": past, "waited": future} {
		must(t, c.RPush(ctx, "redisson_lock_queue:{"+name+"}", holder).Err())
		must(t, c.ZAdd(ctx, "redisson_lock_timeout:{"+name+"}", redis.Z{Member: holder, Score: deadline}).Err())
	}
	must(t, c.HSet(ctx, "held:lock", holder, 1).Err())
	must(t, c.Set(ctx, "redisson_lock_token:{fenced}", 7, 0).Err())
	must(t, c.RPush(ctx, "lock-signal:job", 1).Err())
	must(t, c.RPush(ctx, "lock-signal:short", 1).Err())
	must(t, c.PExpire(ctx, "lock-signal:short", time.Hour).Err())
	must(t, c.RPush(ctx, "bull:mail:stalled", 1).Err())

	s := fast(srv.URL()).build(t)
	got := sweep(t, s)
	want := []string{"lock-signal:job", "redisson_lock_queue:{gone}", "redisson_lock_timeout:{gone}"}
	if !slices.Equal(orphanKeys(got), want) {
		t.Fatalf("orphans %q, want %q", orphanKeys(got), want)
	}
	if o := got.Orphans[1]; o != (locksteward.Orphan{Target: "test", Key: want[1], Lock: "gone", Library: "redisson-fair", TTL: locksteward.NoExpiry}) {
		t.Errorf("orphan %+v", o)
	}
	if len(got.Locks) != 1 {
		t.Errorf("locks %q, want the one that is held", names(got.Locks))
	}

	// The lock is taken again: nothing of it is an orphan any more.
	must(t, c.HSet(ctx, "gone", holder, 1).Err())
	must(t, c.Del(ctx, "lock-signal:job").Err())
	if again := sweep(t, s); len(again.Orphans) != 0 {
		t.Errorf("orphans %q, want none", orphanKeys(again))
	}
}

// On a Cluster helper and lock of some libraries are on two nodes: what cannot be
// asked together is no orphan. Redisson's are on one.
func TestOrphansOnACluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	c := cluster.Client(t)
	ctx := t.Context()
	for _, key := range []string{"redisson_lock_queue:{a}", "redisson_lock_queue:{b}", "redisson_lock_queue:{c}", "lock-signal:x", "lock-signal:y", "lock-signal:z"} {
		must(t, c.RPush(ctx, key, 1).Err())
	}
	for _, key := range []string{"lock:x", "lock:y", "lock:z"} {
		must(t, c.Set(ctx, key, "q8Zt4vN1xKp0Rw7LmB3yHs2U", time.Minute).Err())
	}
	must(t, c.HSet(ctx, "b", "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37", 1).Err())
	got := sweep(t, fast(cluster.URL()).build(t))
	if want := []string{"redisson_lock_queue:{a}", "redisson_lock_queue:{c}"}; !slices.Equal(orphanKeys(got), want) {
		t.Errorf("orphans %q, want %q", orphanKeys(got), want)
	}
}

// A pass that was cut saw less than there is: it tells no orphans.
func TestNoOrphansOfAnIncompletePass(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	fill(t, c, 20_000)
	must(t, c.RPush(t.Context(), "redisson_lock_queue:{a}", 1).Err())
	r := slow(srv.URL())
	s := r.build(t)
	got, err := during(t, s, r.gate, func() {
		must(t, c.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err())
		srv.Pause()
	})
	srv.Resume()
	if err == nil || got.Complete() || len(got.Orphans) != 0 {
		t.Errorf("complete %t, %v, orphans %q, want an incomplete sweep without any", got.Complete(), err, orphanKeys(got))
	}
	if got := sweep(t, s); len(got.Orphans) != 1 {
		t.Errorf("orphans %q, want the queue", orphanKeys(got))
	}
}
