package lock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// shifted returns a client whose machine's wall clock is off by shift.
func shifted(t *testing.T, rdb *redis.Client, shift time.Duration) *Client {
	t.Helper()
	c, err := New(rdb, Options{})
	if err != nil {
		t.Fatal(err)
	}
	real := c.clock.now
	c.clock.now = func() instant {
		i := real()
		i.wall += int64(shift)
		return i
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// B21: how long a lock lasts at the server has nothing to do with the client's
// clock.
func TestTTLIsByTheServersClock(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	ctx := t.Context()
	for _, shift := range []time.Duration{-time.Hour, -30 * time.Second, time.Hour} {
		c := shifted(t, rdb, shift)
		h, err := c.TryAcquire(ctx, "k", Lease{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if ttl := rdb.PTTL(ctx, "k").Val(); ttl < 20*time.Second || ttl > 30*time.Second {
			t.Errorf("clock off by %s: TTL of the lock is %s, want 30s", shift, ttl)
		}
		if err := h.Release(ctx); err != nil {
			t.Errorf("clock off by %s: %v", shift, err)
		}
	}
}

// B10: the place in the queue is by the server's clock: who comes later stands
// behind, whatever time it is there.
func TestQueueIsByTheServersClock(t *testing.T) {
	t.Parallel()
	rdb := testredis.Start(t).Client(t)
	holder := shifted(t, rdb, 0)
	h, err := holder.Acquire(t.Context(), "k", Lease{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	queue := record.Companion(record.DefaultPrefix, record.KindQueue, "k")
	waiters := record.Companion(record.DefaultPrefix, record.KindWaiter, "k")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 3)
	var came []string
	for n, shift := range []time.Duration{time.Hour, 0, -time.Hour} {
		c := shifted(t, rdb, shift)
		go func() {
			_, err := c.Acquire(ctx, "k", Lease{TTL: time.Minute})
			gone <- err
		}()
		testredis.Eventually(t, 10*time.Second, func() bool {
			return rdb.ZCard(context.Background(), queue).Val() == int64(n+1)
		}, "queued")
		for _, id := range rdb.ZRange(t.Context(), queue, 0, -1).Val() {
			if !slices.Contains(came, id) {
				came = append(came, id)
			}
		}
		w, err := record.ParseWaiter(rdb.HGet(t.Context(), waiters, came[n]).Val())
		if err != nil {
			t.Fatal(err)
		}
		now := rdb.Time(t.Context()).Val()
		if late := now.Sub(time.UnixMicro(w.Since)); late < 0 || late > 10*time.Second {
			t.Errorf("clock off by %s: arrived %s ago by the server's clock", shift, late)
		}
	}
	if order := rdb.ZRange(t.Context(), queue, 0, -1).Val(); !slices.Equal(order, came) {
		t.Errorf("queue %v, want the order of arrival %v", order, came)
	}
	cancel()
	for range 3 {
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := h.Release(context.Background()); err != nil {
		t.Error(err)
	}
}
