package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// B32 and all of the above on a cluster: keys of every slot, waiters woken over
// sharded channels, forced releases told over the broadcast one.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	rdb := cluster.Client(t)
	c := open(t, rdb, lock.Options{})
	other := open(t, rdb, lock.Options{})

	var wg sync.WaitGroup
	for i := range 60 {
		key := fmt.Sprintf("lock:%d", i)
		switch i % 4 {
		case 1:
			key = fmt.Sprintf("{lock%d}:x", i)
		case 2:
			key = fmt.Sprintf("a}%d", i)
		case 3:
			key = fmt.Sprintf("{}%d", i)
		}
		wg.Go(func() {
			h, err := c.Acquire(context.Background(), key, lease())
			if err != nil {
				t.Error(err)
				return
			}
			if err := h.Extend(context.Background(), 0); err != nil {
				t.Error(err)
			}
			got := make(chan error, 1)
			go func() {
				h, err := other.Acquire(context.Background(), key, lease())
				if err == nil {
					err = h.Release(context.Background())
				}
				got <- err
			}()
			node := cluster.NodeOf(key).Client(t)
			channel := record.Companion(record.DefaultPrefix, record.KindWake, key) + ":" + other.Instance()
			testredis.Eventually(t, 20*time.Second, func() bool {
				return node.PubSubShardNumSub(context.Background(), channel).Val()[channel] == 1 ||
					node.PubSubNumSub(context.Background(), channel).Val()[channel] == 1 // before Redis 7.0
			}, "waiter subscribes to "+channel)
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
			select {
			case err := <-got:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("waiter for %q was not woken", key)
			}
		})
	}
	wg.Wait()

	h := mustAcquire(t, c, "k", lease())
	channel := record.InstanceKey(record.DefaultPrefix, c.Instance())
	testredis.Eventually(t, 10*time.Second, func() bool {
		// Anywhere in the cluster: a forced release publishes at the lock's node.
		cluster.NodeOf("k").Client(t).Publish(context.Background(), channel, record.Message{Kind: record.MessageLost, ID: h.ID()}.String())
		return h.Err() != nil
	}, "forced release is told")
	if r := lostReason(t, h, time.Second); r != lock.ReasonForced {
		t.Errorf("reason %s", r)
	}
}

// Fault 41: after a failover the library's own connections find the new master,
// which has never seen the scripts.
// fault: 41
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	rdb := sentinel.Client(t)
	c := open(t, rdb, lock.Options{})
	h := mustAcquire(t, c, "k", lease())
	mustRelease(t, h)
	sentinel.Failover(t)
	var next *lock.Handle
	testredis.Eventually(t, 30*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var err error
		next, err = c.Acquire(ctx, "k", lease())
		return err == nil
	}, "acquire after the failover")
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d after the failover, before %d", next.Fence(), h.Fence())
	}
	mustRelease(t, next)
}

func TestTLSAndSocketAndDatabase(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]testredis.Option{"tls": testredis.WithTLS(), "socket": testredis.WithSocket()} {
		srv := testredis.Start(t, opt)
		o := srv.Options()
		o.DB = 3
		rdb := redis.NewClient(o)
		t.Cleanup(func() { _ = rdb.Close() })
		c := open(t, rdb, lock.Options{})
		h := mustAcquire(t, c, "k", lease())
		if exists(t, rdb, "k", metaKey("k")) != 2 || exists(t, srv.Client(t), "k") != 0 {
			t.Errorf("%s: not in database 3", name)
		}
		mustRelease(t, h)
	}
}
