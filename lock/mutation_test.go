package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// through returns a lock client behind a faulty network, warm and quiet: its
// scripts are loaded, its heartbeat is written and its subscription stands.
func through(t *testing.T, srv *testredis.Server, o lock.Options) (*lock.Client, *testredis.Proxy) {
	t.Helper()
	proxy := testredis.NewProxy(t, srv.Addr())
	far := srv.Options()
	far.Addr, far.DisableIdentity = proxy.Addr(), true
	rdb := redis.NewClient(far)
	t.Cleanup(func() { _ = rdb.Close() })
	c := open(t, rdb, o)
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	near := srv.Client(t)
	key := record.InstanceKey(record.DefaultPrefix, c.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		return near.PubSubNumSub(context.Background(), key).Val()[key] == 1 && exists(t, near, key) == 1
	}, "heartbeat and subscription")
	return c, proxy
}

// B18: the reply to the acquire is lost. The repeat is the same request, so that
// the answer is "taken" and not "held, by you".
func TestRepeatAfterALostReplyIsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	c, proxy := through(t, b.srv, lock.Options{})
	proxy.CutAfterReplies(0)
	h, err := c.TryAcquire(t.Context(), "k", lease())
	if err != nil {
		t.Fatalf("the lock was taken by the request whose reply was lost, and the repeat says: %v", err)
	}
	if m := meta(t, b.rdb, "k"); m.ID != h.ID() {
		t.Errorf("metadata %+v, want hold %s", m, h.ID())
	}
	mustRelease(t, h)
}

// B38: at the first sight of a lock all of its metadata is there. What this
// client sends next takes half a second to arrive.
func TestMetadataComesWithTheLock(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	c, proxy := through(t, b.srv, lock.Options{App: "billing"})
	proxy.DelayRequests(500 * time.Millisecond)
	got := make(chan error, 1)
	go func() {
		h, err := c.TryAcquire(context.Background(), "k", lock.Lease{TTL: time.Minute, Class: "orders", Purpose: "charge card"})
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, "k") == 1 }, "lock is taken")
	m := meta(t, b.rdb, "k")
	if m == nil || m.App != "billing" || m.Class != "orders" || m.Purpose != "charge card" || m.PID == 0 || m.TTL != 60000 ||
		m.Fence == 0 || m.Acquired == 0 {
		t.Errorf("metadata of a lock that is held: %+v", m)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// B17: a caller that gives up while the server does not answer. It is told so,
// and what was taken is gone as soon as the server can be reached.
func TestCallerGivesUpWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	c, proxy := through(t, b.srv, lock.Options{Timeout: 2 * time.Second}) // it does not give up before its caller does
	proxy.DropReplies(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan error, 1)
	go func() {
		// Not one that waits: leaving the queue would give the lock back, too.
		_, err := c.TryAcquire(ctx, "k", lock.Lease{TTL: time.Hour})
		got <- err
	}()
	testredis.Eventually(t, 5*time.Second, func() bool {
		return exists(t, b.rdb, record.FenceKey(record.DefaultPrefix, "k")) == 1
	}, "the acquire takes effect")
	cancel()
	select {
	case err := <-got:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(3 * time.Second):
		t.Error("still waiting 3s after the context ended")
	}
	proxy.Heal()
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, "k", metaKey("k")) == 0 }, "want the lock given back")
}

// B33: nothing waits for ever for a server that hangs.
// fault: 18
func TestCallsEndWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{Timeout: time.Second})
	held := mustAcquire(t, b.client, "held", lease())
	again := mustAcquire(t, b.client, "again", lease())
	calls := map[string]func() error{
		"TryAcquire": func() error { _, err := b.client.TryAcquire(context.Background(), "k", lease()); return err },
		"Acquire":    func() error { _, err := b.client.Acquire(context.Background(), "k2", lease()); return err },
		"Extend":     func() error { return again.Extend(context.Background(), 0) },
		"Release":    func() error { return held.Release(context.Background()) },
	}
	b.srv.Pause()
	defer b.srv.Resume() // what hangs all the same, ends
	type end struct {
		name string
		err  error
	}
	ended := make(chan end, len(calls))
	for name, call := range calls {
		go func() { ended <- end{name, call()} }()
	}
	limit := time.After(3 * time.Second)
	for range len(calls) {
		select {
		case e := <-ended:
			if e.err == nil || errors.Is(e.err, lock.ErrHeld) || errors.Is(e.err, lock.ErrLost) {
				t.Errorf("%s: %v", e.name, e.err)
			}
			delete(calls, e.name)
		case <-limit:
			for name := range calls {
				t.Errorf("%s hangs: 3s after the server stopped, with a timeout of 1s", name)
			}
			return
		}
	}
}

// B27: a lock that the server evicts is a loss, told at the next renewal and not
// only at the lease's end.
// fault: 43
func TestEvictedLockIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{}, testredis.WithConfig("maxmemory-policy volatile-random"))
	ctx := t.Context()
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.01})
	b.events.wait(t, lock.EventRenewed, 1, 5*time.Second)
	var used int
	for line := range strings.Lines(b.rdb.Info(ctx, "memory").Val()) {
		if rest, ok := strings.CutPrefix(line, "used_memory:"); ok {
			_, _ = fmt.Sscan(rest, &used)
		}
	}
	if err := b.rdb.ConfigSet(ctx, "maxmemory", fmt.Sprint(used+1<<20)).Err(); err != nil {
		t.Fatal(err)
	}
	// Data without TTL fills the server: only what has one can give way.
	for n := 0; exists(t, b.rdb, "k") == 1; n++ {
		if err := b.rdb.Set(ctx, fmt.Sprint("data", n), strings.Repeat("x", 32<<10), 0).Err(); err != nil || n > 1000 {
			break // full, and nothing is left that could give way
		}
	}
	if exists(t, b.rdb, "k") != 0 {
		t.Fatal("not evicted: not what is to be tested")
	}
	if r := lostReason(t, h, 5*time.Second); r != lock.ReasonGone {
		t.Errorf("reason %s", r)
	}
	if err := h.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v", err)
	}
	b.rdb.ConfigSet(ctx, "maxmemory", "0")
	next := mustAcquire(t, b.client, "k", lease())
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d after the eviction, before %d", next.Fence(), h.Fence())
	}
	mustRelease(t, next)
}

// B36: locks whose names are made to meet, all held at once.
func TestNamesThatLookAlikeAreDifferentLocks(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	held := map[string]*lock.Handle{}
	for _, key := range []string{"a", "{a}", "{a}:a", "{{a}", "{a}}", "meta:{a}", "x{a}", "{a}x", "a}", "}a", "a{}", "{}a", "a:{a}"} {
		held[key] = mustAcquire(t, b.client, key, lock.Lease{TTL: time.Minute, Purpose: "of " + key})
	}
	for key, h := range held {
		if m := meta(t, b.rdb, key); m == nil || m.ID != h.ID() || m.Purpose != "of "+key {
			t.Errorf("%q: metadata is that of another lock: %+v", key, m)
		}
	}
	for key, h := range held {
		mustRelease(t, h)
		delete(held, key)
		for other := range held {
			if meta(t, b.rdb, other) == nil {
				t.Errorf("the release of %q deleted the metadata of %q", key, other)
			}
		}
	}
}
