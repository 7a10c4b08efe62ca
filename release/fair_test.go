package release_test

import (
	"context"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// TestReleaseWakesTheFirstOfAQueue: a forced release knows nothing of queues, but
// the first in one has the lock at once and not after the TTL.
func TestReleaseWakesTheFirstOfAQueue(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const key = "lock:order:queue"
	client, err := lock.New(e.rdb, lock.Options{App: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lease := lock.Lease{TTL: time.Minute, NoRenew: true}
	if _, err := client.Acquire(t.Context(), key, lease); err != nil {
		t.Fatal(err)
	}
	instance := record.InstanceKey(record.DefaultPrefix, client.Instance())
	testredis.Eventually(t, 10*time.Second, func() bool {
		n, err := e.rdb.PubSubNumSub(t.Context(), instance).Result()
		return err == nil && n[instance] == 1
	}, "the waiters' process listens")
	type taken struct {
		who int
		h   *lock.Handle
		err error
	}
	got := make(chan taken, 2)
	queue := record.Companion(record.DefaultPrefix, record.KindQueue, key)
	for who := range 2 {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			h, err := client.Acquire(ctx, key, lease)
			got <- taken{who, h, err}
		}()
		testredis.Eventually(t, 10*time.Second, func() bool {
			return e.rdb.ZCard(t.Context(), queue).Val() == int64(who+1)
		}, "the waiter stands in the queue")
	}
	r := e.request(t, ana, key)
	approved := time.Now()
	r = e.approve(t, ben, r)
	e.want(t, r, locksteward.RequestReleased)
	if r.WaitersWoken == 0 {
		t.Error("nobody was notified")
	}
	began := time.Now()
	for want := range 2 {
		next := <-got
		if next.err != nil {
			t.Fatal(next.err)
		}
		// A first one that stands still for its whole turn is passed over.
		if next.who != want && time.Since(approved) < record.Turn {
			t.Errorf("waiter %d had its turn, want %d", next.who, want)
		}
		if err := next.h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	took := time.Since(began)
	t.Logf("both had it within %s", took)
	if took > 5*time.Second {
		t.Errorf("the queue stood still for %s", took)
	}
}
