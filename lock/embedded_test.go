package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// The demo falls back to an embedded server where there is no redis-server:
// scripts, metadata, wake-ups and losses work there too.
func TestEmbeddedServer(t *testing.T) {
	t.Parallel()
	srv := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	c := open(t, rdb, lock.Options{App: "demo"})
	h := mustAcquire(t, c, "k", lease())
	if m := meta(t, rdb, "k"); m.ID != h.ID() || m.Fence != h.Fence() || m.App != "demo" {
		t.Errorf("metadata %+v", m)
	}
	if err := h.Extend(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if m := meta(t, rdb, "k"); m.Renewals != 1 {
		t.Errorf("renewals %d", m.Renewals)
	}
	if _, err := c.TryAcquire(t.Context(), "k", lease()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("got %v", err)
	}
	got := make(chan error, 1)
	go func() {
		h, err := c.Acquire(context.Background(), "k", lease())
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	wake := record.InstanceKey(record.DefaultPrefix, c.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		return rdb.PubSubNumSub(context.Background(), wake).Val()[wake] == 1
	}, "waiter subscribes")
	queued(t, rdb, "k", 1)
	mustRelease(t, h)
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("waiter was not woken")
	}
	h = mustAcquire(t, c, "k", lease())
	srv.FastForward(time.Hour)
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of an expired lock: %v", err)
	}
}
