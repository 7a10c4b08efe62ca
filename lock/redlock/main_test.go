package redlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testredis.Settled{M: m, SideBySide: 8}) }

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

func evals(t *testing.T, rdb *redis.Client) (n int64) {
	t.Helper()
	info := rdb.Info(context.Background(), "commandstats").Val()
	for l := range strings.SplitSeq(info, "\r\n") {
		for _, name := range []string{"cmdstat_evalsha:", "cmdstat_eval:"} {
			if rest, ok := strings.CutPrefix(l, name); ok {
				n += parseCalls(t, rest)
			}
		}
	}
	return n
}

func parseCalls(t *testing.T, stat string) int64 {
	t.Helper()
	text, ok := strings.CutPrefix(strings.Split(stat, ",")[0], "calls=")
	if !ok {
		t.Fatalf("commandstats: %q", stat)
	}
	var n int64
	for _, c := range text {
		n = n*10 + int64(c-'0')
	}
	return n
}

// wantCode wants an error reply of that code, which says so in the server's word.
func wantCode(t *testing.T, err error, want lock.Code, word string) *lock.ServerError {
	t.Helper()
	reply, ok := errors.AsType[*lock.ServerError](err)
	if !ok || reply.Code != want || !strings.Contains(reply.Err.Error(), word) {
		t.Fatalf("got %v, want code %s and the word %s", err, want, word)
	}
	return reply
}

// recorder keeps the events of a client.
type recorder struct {
	mu   sync.Mutex
	list []lock.Event
}

func (r *recorder) add(e lock.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

// of returns the events of one kind so far.
func (r *recorder) of(kind lock.EventKind) []lock.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.list), func(e lock.Event) bool { return e.Kind != kind })
}

// wait waits for n events of a kind.
func (r *recorder) wait(t *testing.T, kind lock.EventKind, n int, within time.Duration) {
	t.Helper()
	testredis.Eventually(t, within, func() bool { return len(r.of(kind)) >= n }, "want event "+string(kind))
}
