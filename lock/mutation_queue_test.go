package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// B36c: a lock of wire format 1 is a typed error, is not waited for and not overwritten.
func TestFormat1IsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	const old = "ls1:A:secret"
	b.rdb.Set(t.Context(), "k", old, time.Minute)
	for name, acquire := range map[string]func(context.Context, string, lock.Lease) (*lock.Handle, error){
		"try": b.client.TryAcquire, "wait": b.client.Acquire,
	} {
		l := lease()
		l.Wait = 5 * time.Second
		began := time.Now()
		_, err := acquire(t.Context(), "k", l)
		wantCode(t, err, lock.CodeFormat, "FORMAT")
		if took := time.Since(began); took > 2*time.Second || !strings.Contains(err.Error(), "wire format 1") {
			t.Errorf("%s: %v after %s", name, err, took)
		}
	}
	if value := b.rdb.Get(t.Context(), "k").Val(); value != old {
		t.Errorf("value %q", value)
	}
	if n := exists(t, b.rdb, queueKey("k"), waiterKey("k"), metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

// A waiter whose first reply is lost keeps its place.
func TestLostReplyKeepsThePlace(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	c, proxy := through(t, b.srv, lock.Options{})
	proxy.CutAfterReplies(0)
	first := wanting(c)
	queued(t, b.rdb, "k", 1)
	second := wanting(b.client)
	queued(t, b.rdb, "k", 2)
	order := b.rdb.ZRangeWithScores(t.Context(), queueKey("k"), 0, -1).Val()
	testredis.Eventually(t, 10*time.Second, func() bool { return proxy.Accepted() > 2 }, "it asks again")
	<-time.After(100 * time.Millisecond) // the repeat is executed
	if now := b.rdb.ZRangeWithScores(t.Context(), queueKey("k"), 0, -1).Val(); !slices.Equal(now, order) {
		t.Errorf("queue %v, before %v", now, order)
	}
	mustRelease(t, h)
	mustRelease(t, served(t, first))
	mustRelease(t, served(t, second))
}

// B8c: a waiter that the server refuses to record fully leaves nothing, whatever
// command it is.
func TestDeniedWaiterLeavesNothing(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "a channel in an ACL")
	srv := testredis.Start(t, testredis.WithACL("app on >secret ~* &* +@all"))
	admin := srv.Client(t)
	for _, rule := range []string{"-pexpire", "-hset", "-zadd"} {
		admin.FlushAll(t.Context())
		admin.Set(t.Context(), "k", "another", time.Minute)
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "&*", "+@all", rule).Err(); err != nil {
			t.Fatal(err)
		}
		c := open(t, srv.ClientAs(t, "app", "secret"), lock.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		before := evals(t, admin)
		go func() {
			_, err := c.Acquire(ctx, "k", lock.Lease{TTL: time.Minute})
			done <- err
		}()
		testredis.Eventually(t, 10*time.Second, func() bool { return evals(t, admin) > before }, "it asks")
		if n := exists(t, admin, queueKey("k"), waiterKey("k")); n != 0 {
			t.Errorf("%s: %d keys left", rule, n)
		}
		cancel()
		// The reply that says that it is held may come later than the end of ctx.
		if err := <-done; !errors.Is(err, lock.ErrHeld) && !errors.Is(err, lock.ErrUnknown) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// B17c: Lease.Wait ends an attempt whose reply does not come, too.
func TestWaitEndsAnAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	proxy := testredis.NewProxy(t, b.srv.Addr())
	c := openThrough(t, b.srv, proxy, 10, lock.Options{Timeout: 20 * time.Second})
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	proxy.Freeze(true)
	l := lease()
	l.Wait = 300 * time.Millisecond
	began := time.Now()
	_, err := c.Acquire(t.Context(), "k", l)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
	if !errors.Is(err, lock.ErrUnknown) || !strings.Contains(err.Error(), "Lease.Wait") {
		t.Errorf("got %v", err)
	}
	proxy.Heal()
	mustRelease(t, h)
}
