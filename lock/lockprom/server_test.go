package lockprom

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// open returns a lock client that is closed at the end of the test.
func open(t testing.TB, rdb redis.UniversalClient, o lock.Options) *lock.Client {
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

func register(t testing.TB, list ...prometheus.Collector) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, c := range list {
		if err := reg.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

func lease(class string) lock.Lease { return lock.Lease{TTL: 30 * time.Second, Class: class} }

func mustAcquire(t testing.TB, c *lock.Client, key string, l lock.Lease) *lock.Handle {
	t.Helper()
	h, err := c.Acquire(context.Background(), key, l)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustRelease(t testing.TB, h *lock.Handle) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestOnAServer goes through what a holder can meet, on a real server.
func TestOnAServer(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	seen := 0
	client := open(t, rdb, lock.Options{})
	client.Observe(func(e lock.Event) {
		if e.Kind == lock.EventAcquired {
			seen++
		}
	})
	other := open(t, rdb, lock.Options{})
	c := New(client, other)
	reg := register(t, c)

	// Held, found held, waited for, renewed, released.
	h := mustAcquire(t, client, "k1", lease("orders"))
	if _, err := other.TryAcquire(t.Context(), "k1", lease("orders")); !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("err = %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 2)
	go func() {
		_, err := other.Acquire(canceled, "k1", lease("orders"))
		waited <- err
	}()
	testredis.Eventually(t, 5*time.Second, func() bool {
		n, err := rdb.ZCard(t.Context(), "locksteward:queue:{k1}").Result()
		return err == nil && n == 1
	}, "the other waits")
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v", err)
	}
	if err := h.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	want(t, reg, map[string]float64{
		`locks_held{class="orders"}`: 1, `renewals_total{class="orders"}`: 1,
		`acquire_failures_total{class="orders",reason="held"}`:     1,
		`acquire_failures_total{class="orders",reason="canceled"}`: 1,
		`acquire_contended_total{class="orders"}`:                  2,
		`wait_seconds_count{class="orders",result="held"}`:         2,
	})
	mustRelease(t, h)

	// Another type under the name.
	if err := rdb.RPush(t.Context(), "list", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.TryAcquire(t.Context(), "list", lease("orders")); reasonOf(err) != reasonWrongType {
		t.Fatalf("err = %v", err)
	}

	// Taken by a hand, and noticed.
	h = mustAcquire(t, client, "k2", lease(""))
	if err := rdb.Set(t.Context(), "k2", "mine", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := h.Extend(t.Context(), 0); !errors.Is(err, lock.ErrLost) {
		t.Fatalf("err = %v", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Fatalf("err = %v", err)
	}

	// Lost by MaxHold, then released by its holder: one hold, one end.
	l := lease("")
	l.MaxHold = 20 * time.Millisecond
	h = mustAcquire(t, client, "k3", l)
	testredis.Eventually(t, 5*time.Second, func() bool {
		return samples(t, reg)[`locks_lost_total{class="default",reason="max_hold"}`] == 1
	}, "the loss is counted")
	mustRelease(t, h)

	want(t, reg, map[string]float64{
		`acquire_attempts_total{class="orders"}`:                     4,
		`acquired_total{class="orders"}`:                             1,
		`acquire_failures_total{class="orders",reason="wrong_type"}`: 1,
		`locks_held{class="orders"}`:                                 0,
		`releases_total{class="orders",outcome="released"}`:          1,
		`acquired_total{class="default"}`:                            2,
		`locks_held{class="default"}`:                                0,
		`locks_lost_total{class="default",reason="taken"}`:           1,
		`locks_lost_total{class="default",reason="max_hold"}`:        1,
		`releases_total{class="default",outcome="lost"}`:             2,
		`releases_total{class="default",outcome="released"}`:         0,
		`hold_seconds_count{class="default",outcome="lost"}`:         2,
	})
	if seen != 3 {
		t.Errorf("another observer has seen %d acquires, want 3", seen)
	}
}

// TestServerAway is a release without a reply, and an acquire without one.
func TestServerAway(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	client := open(t, srv.Client(t), lock.Options{Timeout: time.Second})
	reg := register(t, New(client))
	h := mustAcquire(t, client, "k", lease("jobs"))
	srv.Pause()
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("err = %v", err)
	}
	if _, err := client.TryAcquire(t.Context(), "k2", lease("jobs")); !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("err = %v", err)
	}
	srv.Resume()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return samples(t, reg)[`cleanups_total{class="jobs",outcome="cleaned"}`] == 2
	}, "both are cleaned up")
	want(t, reg, map[string]float64{
		`releases_total{class="jobs",outcome="unknown"}`:        1,
		`acquire_failures_total{class="jobs",reason="unknown"}`: 1,
		`locks_held{class="jobs"}`:                              0,
		`hold_seconds_count{class="jobs",outcome="unknown"}`:    1,
	})

	srv.Kill()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return samples(t, reg)["push_failures_total"] > 0
	}, "the lost connection is counted")
	if _, err := client.TryAcquire(t.Context(), "k3", lease("jobs")); err == nil {
		t.Error("acquired without a server")
	}
	want(t, reg, map[string]float64{`acquire_failures_total{class="jobs",reason="unreachable"}`: 1})
}

// TestSeveralClients shows the two ways to have them in one registry.
func TestSeveralClients(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	a, b := open(t, rdb, lock.Options{}), open(t, rdb, lock.Options{})
	labelled := func(name string, client *lock.Client) *Collector {
		c, err := NewWithOptions(Options{ConstLabels: prometheus.Labels{"target": name}}, client)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	apart := register(t, labelled("a", a), labelled("b", b))
	together := register(t, New(a, b, a)) // once each

	mustRelease(t, mustAcquire(t, a, "ka", lease("x")))
	mustRelease(t, mustAcquire(t, b, "kb", lease("x")))
	hb := mustAcquire(t, b, "kb", lease("x"))
	want(t, apart, map[string]float64{
		`acquired_total{class="x",target="a"}`: 1, `acquired_total{class="x",target="b"}`: 2, `locks_held{class="x",target="b"}`: 1,
	})
	want(t, together, map[string]float64{`acquired_total{class="x"}`: 3, `locks_held{class="x"}`: 1})
	mustRelease(t, hb)

	if err := register(t, New(a)).Register(New(b)); err == nil {
		t.Error("two collectors without constant labels fit into one registry: the documentation says that they do not")
	}
}

// TestStop ends the observation of one client and of all.
func TestStop(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	a, b := open(t, rdb, lock.Options{}), open(t, rdb, lock.Options{})
	c := New(a)
	reg := register(t, c)
	stop := c.Observe(b)
	again := c.Observe(b)
	ha, hb := mustAcquire(t, a, "ka", lease("x")), mustAcquire(t, b, "kb", lease("x"))
	want(t, reg, map[string]float64{`locks_held{class="x"}`: 2, `acquired_total{class="x"}`: 2})

	stop()
	stop()
	again()
	want(t, reg, map[string]float64{`locks_held{class="x"}`: 1, `acquired_total{class="x"}`: 2})
	mustRelease(t, hb)
	want(t, reg, map[string]float64{`locks_held{class="x"}`: 1, `releases_total{class="x",outcome="released"}`: 0})

	c.Observe(b) // anew
	mustRelease(t, mustAcquire(t, b, "kb", lease("x")))
	want(t, reg, map[string]float64{`acquired_total{class="x"}`: 3, `releases_total{class="x",outcome="released"}`: 1})

	c.Close()
	c.Close()
	c.Observe(b)()
	mustRelease(t, ha)
	mustRelease(t, mustAcquire(t, b, "kb", lease("x")))
	want(t, reg, map[string]float64{`locks_held{class="x"}`: 0, `acquired_total{class="x"}`: 3})
}

// TestClosedClient shows that what a client held when it was closed is lost.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	client, err := lock.New(srv.Client(t), lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reg := register(t, New(client))
	mustAcquire(t, client, "k", lease("x"))
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, reg, map[string]float64{
		`locks_held{class="x"}`: 0, `locks_lost_total{class="x",reason="closed"}`: 1,
	})
}
