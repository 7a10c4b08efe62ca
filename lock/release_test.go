package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// Promise: release is tri-state. B23: a lock that has expired is not an error
// of the server, and not a success.
func TestReleaseOfExpiredLockSaysLost(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 2 * time.Second, NoRenew: true})
	testredis.Eventually(t, 10*time.Second, func() bool { return exists(t, b.rdb, "k") == 0 }, "expiry")
	err := h.Release(t.Context())
	if !errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	if again := h.Release(t.Context()); !errors.Is(again, lock.ErrLost) {
		t.Errorf("second release: %v", again)
	}
	// It outlives the lock, so that the loss can be seen.
	if meta(t, b.rdb, "k") == nil {
		t.Error("metadata of the lost hold is gone")
	}
}

// The release of a lost hold takes nobody out of the queue, and so needs no right to.
func TestReleaseOfLostLockWritesNothing(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 0, "an ACL")
	srv := testredis.Start(t, testredis.WithACL("app on >secret ~* &* +@all -zrem -hdel"))
	c := open(t, srv.ClientAs(t, "app", "secret"), lock.Options{})
	h := mustAcquire(t, c, "k", lease())
	srv.Client(t).Del(t.Context(), "k")
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// B25: release never touches another's lock.
func TestReleaseLeavesAnothersLock(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 2 * time.Second, NoRenew: true})
	next := mustAcquire(t, b.client, "k", lease())
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v", err)
	}
	m := meta(t, b.rdb, "k")
	if exists(t, b.rdb, "k") != 1 || m == nil || m.ID != next.ID() {
		t.Error("the next holder's lock or metadata was touched")
	}
	if m != nil && (m.Lost == nil || m.Lost.ID != h.ID() || m.Lost.Fence != h.Fence() || m.Lost.Holder != b.client.Instance()) {
		t.Errorf("lost: %+v, want hold %s", m.Lost, h.ID())
	}
	if m != nil && m.Lost != nil {
		if d := m.Acquired - m.Lost.Deadline; d < 0 || d > 2000 {
			t.Errorf("deadline of the lost hold is %d ms before the next acquire", d)
		}
	}
	mustRelease(t, next)
}

// B33 and the third state: no reply. The call returns in time, says unknown, and
// the lock goes as soon as the server answers, long before its TTL.
func TestReleaseUnknownGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	events := &recorder{}
	c := open(t, rdb, lock.Options{Timeout: time.Second})
	c.Observe(events.add)
	h := mustAcquire(t, c, "k", lock.Lease{TTL: time.Hour})
	proxy.Cut()
	began := time.Now()
	err := h.Release(t.Context())
	if err == nil || errors.Is(err, lock.ErrLost) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
	if !errors.Is(context.Cause(h.Context()), lock.ErrReleased) {
		t.Errorf("cause %v", context.Cause(h.Context()))
	}
	if exists(t, b.rdb, "k") != 1 {
		t.Fatal("gone already: not what is to be tested")
	}
	proxy.Heal()
	events.wait(t, lock.EventCleaned, 1, 10*time.Second)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

// A release whose reply is lost is asked for again; gone then means released.
func TestLostReplyOfRelease(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	c := open(t, rdb, lock.Options{Timeout: 5 * time.Second}) // the release does not give up before the network is healed
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	h := mustAcquire(t, c, "k", lease())
	proxy.DropReplies(true)
	first := make(chan error, 1)
	go func() { first <- h.Release(context.Background()) }()
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, "k") == 0 }, "release takes effect")
	proxy.Heal()
	if err := <-first; err != nil && !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestDoReleasesAndTellsOfLoss(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	why := errors.New("work failed")
	err := b.client.Do(t.Context(), "k", lease(), func(ctx context.Context, fence int64) error {
		if fence == 0 || ctx.Err() != nil {
			t.Errorf("fence %d, context %v", fence, ctx.Err())
		}
		return why
	})
	if !errors.Is(err, why) || errors.Is(err, lock.ErrLost) {
		t.Errorf("got %v", err)
	}
	if exists(t, b.rdb, "k") != 0 {
		t.Error("lock left")
	}
	err = b.client.Do(t.Context(), "k", lock.Lease{TTL: 2 * time.Second, NoRenew: true}, func(ctx context.Context, _ int64) error {
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, lock.ErrLost) {
		t.Errorf("lost while f ran: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = b.client.Do(t.Context(), "p", lease(), func(context.Context, int64) error { panic("boom") })
	}()
	if exists(t, b.rdb, "p") != 0 {
		t.Error("a panic left the lock")
	}
}

// Close ends what is held and leaves the locks to their TTL.
func TestCloseEndsHolds(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	c, err := lock.New(rdb, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := mustAcquire(t, c, "k", lease())
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Acquire(context.Background(), "k", lease())
		waiting <- err
	}()
	queued(t, rdb, "k", 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if r := lostReason(t, h, time.Second); r != lock.ReasonClosed || !errors.Is(h.Err(), lock.ErrClosed) {
		t.Errorf("reason %s, %v", r, h.Err())
	}
	if err := <-waiting; !errors.Is(err, lock.ErrClosed) {
		t.Errorf("waiter: %v", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrUnknown) || !errors.Is(err, lock.ErrClosed) {
		t.Errorf("release: %v", err)
	}
	if _, err := c.TryAcquire(t.Context(), "k2", lease()); !errors.Is(err, lock.ErrClosed) {
		t.Errorf("acquire: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if exists(t, rdb, "k") != 1 {
		t.Error("close deleted a lock that was held")
	}
	if n := exists(t, rdb, "k2"); n != 0 {
		t.Error("a closed client took a lock")
	}
}
