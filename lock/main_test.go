package lock_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2:]))
	}
	goleak.VerifyTestMain(testredis.Settled{M: m, SideBySide: 4})
}

// bundle is one server with one lock client and a plain client to look with.
type bundle struct {
	srv    *testredis.Server
	rdb    *redis.Client
	client *lock.Client
	events *recorder
}

func setup(t *testing.T, o lock.Options, opts ...testredis.Option) *bundle {
	t.Helper()
	srv := testredis.Start(t, opts...)
	rdb := srv.Client(t)
	b := &bundle{srv: srv, rdb: rdb, events: &recorder{}}
	b.client = open(t, rdb, o)
	b.client.Observe(b.events.add)
	return b
}

// open returns a lock client that is closed at the end of the test.
func open(t *testing.T, rdb redis.UniversalClient, o lock.Options) *lock.Client {
	t.Helper()
	c, err := lock.New(rdb, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// lease is a lease that is renewed so seldom that no test sees it.
func lease() lock.Lease { return lock.Lease{TTL: 30 * time.Second} }

func mustAcquire(t *testing.T, c *lock.Client, key string, l lock.Lease) *lock.Handle {
	t.Helper()
	h, err := c.Acquire(t.Context(), key, l)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustRelease(t *testing.T, h *lock.Handle) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// meta reads the metadata of a lock.
func meta(t *testing.T, rdb redis.Cmdable, key string) *record.Meta {
	t.Helper()
	text, err := rdb.Get(context.Background(), metaKey(key)).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func metaKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindHold, key)
}

func exists(t *testing.T, rdb redis.Cmdable, keys ...string) int64 {
	t.Helper()
	n, err := rdb.Exists(context.Background(), keys...).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// await fails the test unless ch is closed or has a value in time.
func await[T any](t *testing.T, ch <-chan T, within time.Duration, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(within):
		t.Fatalf("timed out after %s: %s", within, what)
	}
}
