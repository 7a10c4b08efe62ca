package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// Fault 14: the acquire took effect and its reply was lost. The repeat is the
// same request: it finds itself, and the fence has grown once.
// fault: 14, 16
func TestLostReplyOfAcquire(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), DisableIdentity: true})
	t.Cleanup(func() { _ = rdb.Close() })
	c := open(t, rdb, lock.Options{})
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	testredis.Eventually(t, 5*time.Second, func() bool {
		key := record.InstanceKey(record.DefaultPrefix, c.Instance())
		return b.rdb.PubSubNumSub(context.Background(), key).Val()[key] == 1 && exists(t, b.rdb, key) == 1
	}, "quiet")
	proxy.CutAfterReplies(0)
	h := mustAcquire(t, c, "k", lease())
	if m := meta(t, b.rdb, "k"); m.ID != h.ID() || m.Fence != h.Fence() || m.Lost != nil {
		t.Errorf("metadata after the repeat: %+v, handle %s fence %d", m, h.ID(), h.Fence())
	}
	if fence, _ := b.rdb.Get(t.Context(), record.FenceKey(record.DefaultPrefix, "k")).Int64(); fence != h.Fence() {
		t.Errorf("fence key %d, handle %d", fence, h.Fence())
	}
	mustRelease(t, h)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

// Fault 14, second half: no reply ever comes. The call ends in time, and what it
// may have taken is given back as soon as the server answers.
// fault: 14
func TestAcquireWithoutReplyIsGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	events := &recorder{}
	c := open(t, rdb, lock.Options{Timeout: 500 * time.Millisecond})
	c.Observe(events.add)
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	proxy.DropReplies(true)
	began := time.Now()
	// Not one that waits: leaving the queue would give the lock back, too.
	_, err := c.TryAcquire(t.Context(), "k", lease())
	if !errors.Is(err, lock.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("returned after %s", took)
	}
	// The lock itself may be gone again: what frees it is executed too.
	if exists(t, b.rdb, record.FenceKey(record.DefaultPrefix, "k")) != 1 {
		t.Fatal("the request did not take effect: not what is to be tested")
	}
	proxy.Heal()
	events.wait(t, lock.EventCleaned, 1, 10*time.Second)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

// B20: validity counts from the request. A reply after nine tenths of the TTL is
// refused and the lock given back.
// fault: 2
func TestLateReplyIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	events := &recorder{}
	c := open(t, rdb, lock.Options{})
	c.Observe(events.add)
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	proxy.Delay(900 * time.Millisecond)
	_, err := c.TryAcquire(t.Context(), "k", lock.Lease{TTL: time.Second})
	if !errors.Is(err, lock.ErrTooLate) && !errors.Is(err, lock.ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	proxy.Heal()
	events.wait(t, lock.EventCleaned, 1, 10*time.Second)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}
