package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// B11: any of a lock's companions may be missing when a script looks at it.
func TestScriptsBearMissingCompanions(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	fence := record.FenceKey(record.DefaultPrefix, "k")
	for name, missing := range map[string][]string{
		"waiters":  {waiterKey("k")},
		"queue":    {queueKey("k")},
		"metadata": {metaKey("k")},
		"fence":    {fence},
		"all":      {waiterKey("k"), queueKey("k"), metaKey("k"), fence},
	} {
		b.rdb.FlushAll(ctx)
		h := mustAcquire(t, b.client, "k", lease())
		enqueue(t, b.rdb, "k", "HEAD", "far", "-", time.Minute)
		b.rdb.Del(ctx, missing...)
		if _, err := b.client.TryAcquire(ctx, "k", lease()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("without %s: try: %v", name, err)
		}
		b.rdb.Del(ctx, missing...)
		// Cancelled, it has longer for its answer and to leave the queue than at the end of Lease.Wait.
		short, cancel := context.WithCancel(ctx)
		end := time.AfterFunc(200*time.Millisecond, cancel)
		if _, err := b.client.Acquire(short, "k", lease()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("without %s: wait in the queue: %v", name, err)
		}
		end.Stop()
		cancel()
		b.rdb.Del(ctx, missing...)
		if err := h.Extend(ctx, 0); err != nil {
			t.Errorf("without %s: extend: %v", name, err)
		}
		enqueue(t, b.rdb, "k", "HEAD", "far", "-", time.Minute)
		b.rdb.Del(ctx, missing...)
		if err := h.Release(ctx); err != nil {
			t.Errorf("without %s: release: %v", name, err)
		}
		b.rdb.Del(ctx, missing...)
		enqueue(t, b.rdb, "k", "HEAD", "far", "-", time.Minute)
		b.rdb.Set(ctx, metaKey("k"), `{"free":"1","v":2}`, time.Minute)
		b.rdb.Del(ctx, missing...)
		// Where the head is known still, it is its turn.
		next, err := b.client.TryAcquire(ctx, "k", lease())
		if err != nil && !errors.Is(err, lock.ErrHeld) {
			t.Errorf("without %s: take it when it is free: %v", name, err)
		}
		if err == nil {
			mustRelease(t, next)
		}
	}
}

// B13: waiters on many locks of a Cluster share one subscriber connection to a
// node, and leave nothing behind: neither connection nor channel.
func TestManyWaitersShareOneSubscriber(t *testing.T) {
	t.Parallel()
	const many = 300
	rdb := testredis.StartCluster(t).Client(t)
	waiting := open(t, rdb, lock.Options{})
	mustRelease(t, mustAcquire(t, waiting, "warm", lease()))
	node, err := rdb.MasterForKey(t.Context(), "{k}")
	if err != nil {
		t.Fatal(err)
	}
	subscribers := func() int {
		list, _ := node.Do(context.Background(), "CLIENT", "LIST", "TYPE", "PUBSUB").Text()
		return strings.Count(list, " addr=")
	}
	before := subscribers() // 1 if the process's own channel is on this node
	for n := range many {
		rdb.Set(t.Context(), fmt.Sprint("{k}", n), "another", 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for n := range many {
		crowd.Go(func() {
			if _, err := waiting.Acquire(ctx, fmt.Sprint("{k}", n), lease()); !errors.Is(err, context.Canceled) {
				t.Errorf("waiter %d: %v", n, err)
			}
		})
	}
	channels := func() int { return len(node.PubSubShardChannels(context.Background(), "*:wake:*").Val()) }
	testredis.Eventually(t, 20*time.Second, func() bool { return channels() == many }, "a channel for each lock")
	if n := subscribers(); n > before+1 {
		t.Errorf("%d subscriber connections for waiters on %d locks, %d before", n, many, before)
	}
	cancel()
	crowd.Wait()
	testredis.Eventually(t, 10*time.Second, func() bool { return channels() == 0 }, "want channels that nobody waits on left")
}

// B29: Close comes back when the subscriber connection broke first, or while it
// stands: no goroutine waits for one that has gone.
func TestCloseEndsTheSubscriber(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	c, err := lock.New(b.rdb, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, mustAcquire(t, c, "k", lease()))
	channel := record.InstanceKey(record.DefaultPrefix, c.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		return b.rdb.PubSubNumSub(context.Background(), channel).Val()[channel] == 1
	}, "subscribed")
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Close does not come back: a goroutine is stuck")
	}
}
