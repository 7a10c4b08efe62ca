package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// Those who find no place free share the next round trip.
func TestManyShareARoundTrip(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	c := openThrough(t, srv, proxy, 1, lock.Options{})
	mustRelease(t, mustAcquire(t, c, "first", lease())) // the scripts are known
	admin := srv.Client(t)
	proxy.Delay(100 * time.Millisecond)
	before := infoInt(t, admin.Info(t.Context(), "stats").Val(), "total_reads_processed")
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() { mustAcquire(t, c, fmt.Sprintf("k%d", i), lease()) })
	}
	wg.Wait()
	// One goes at once; the others share four round trips. One by one
	// they would take six seconds.
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	after := infoInt(t, admin.Info(t.Context(), "stats").Val(), "total_reads_processed")
	if n := after - before; n > 15 {
		t.Errorf("%d reads for 60 acquires", n)
	}
}

// Fault 22: acquires take all places and hang, and what is held is renewed.
// fault: 22
func TestRenewalsHaveConnectionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	c := openThrough(t, srv, proxy, 1, lock.Options{})
	h := mustAcquire(t, c, "held", lock.Lease{TTL: 3 * time.Second})
	proxy.DelayRequests(40 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if other, err := c.TryAcquire(ctx, fmt.Sprintf("k%d", i), lease()); err == nil {
					_ = other.Release(context.Background())
				}
			}
		})
	}
	admin := srv.Client(t)
	renewals := func() int64 { m := meta(t, admin, "held"); return m.Renewals }
	testredis.Eventually(t, 20*time.Second, func() bool { return renewals() >= 4 || h.Err() != nil }, "renewals go on")
	if err := h.Err(); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
	mustRelease(t, h)
}

// openThrough opens a client that reaches srv through proxy, over a pool of that size.
func openThrough(t *testing.T, srv *testredis.Server, proxy *testredis.Proxy, pool int, o lock.Options) *lock.Client {
	t.Helper()
	far := srv.Options()
	far.Addr, far.PoolSize = proxy.Addr(), pool
	rdb := redis.NewClient(far)
	t.Cleanup(func() { _ = rdb.Close() })
	return open(t, rdb, o)
}
