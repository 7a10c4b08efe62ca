package release_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/fenced"
	"github.com/locksteward/locksteward/lock/record"
)

// A holder that lives on after its lock was released by force: it is reported within a
// second of the approval, where the machine lets this test run as often as that once
// in five times, and what it writes all the same is refused once the next one has
// written.
// fault: 76
func TestHolderThatLivesOn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const key = "lock:order:9"
	open := func(app string) *lock.Client {
		t.Helper()
		c, err := lock.New(e.rdb, lock.Options{App: app})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	old, next := open("old"), open("next")
	take := func() *lock.Handle {
		t.Helper()
		h, err := old.Acquire(t.Context(), key, lock.Lease{TTL: time.Minute, NoRenew: true})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := take()
	instance := record.InstanceKey(record.DefaultPrefix, old.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		n, err := e.rdb.PubSubNumSub(t.Context(), instance).Result()
		return err == nil && n[instance] == 1
	}, "the holder listens")
	write := func(fence int64, value string) bool {
		t.Helper()
		err := fenced.Set(t.Context(), e.rdb, "order:9", fence, value)
		if err != nil && !errors.Is(err, fenced.ErrStale) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !write(h.Fence(), "by the old one") {
		t.Fatal("the holder may not write")
	}
	best := time.Hour
	for n := 1; ; n++ {
		reported := make(chan time.Time, 1)
		r := e.request(t, ana, key)
		context.AfterFunc(h.Context(), func() { reported <- time.Now() }) // the holder's own word
		began := time.Now()
		e.want(t, e.approve(t, ben, r), locksteward.RequestReleased)
		select {
		case at := <-reported:
			best = min(best, at.Sub(began))
		case <-time.After(10 * time.Second):
			t.Fatal("the holder is not reported")
		}
		if lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context())); !ok || lost.Reason != lock.ReasonForced {
			t.Errorf("cause %v", context.Cause(h.Context()))
		}
		if best <= time.Second || n == 5 {
			break
		}
		h = take()
	}
	if best > time.Second {
		t.Errorf("reported after %s at best", best)
	}
	n, err := next.TryAcquire(t.Context(), key, lock.Lease{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if n.Fence() <= h.Fence() {
		t.Errorf("the next fence is %d, that of the old hold %d", n.Fence(), h.Fence())
	}
	if !write(n.Fence(), "by the next one") {
		t.Error("the next holder may not write")
	}
	if write(h.Fence(), "too late") {
		t.Error("a late write of the old holder was taken")
	}
	if err := n.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
