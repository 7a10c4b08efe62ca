package redlock_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/redlock"
)

// Fault 30: nodes that come back without their memory when the longest lease is
// over harm nobody, without MinUptime too: by then the first holder knows.
// fault: 30
func TestRedlockRestartAfterTheTTL(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	first := ns.open(t, redlock.Options{})
	second := ns.open(t, redlock.Options{})
	l := lock.Lease{TTL: 2 * time.Second, NoRenew: true}
	h := mustAcquire(t, first, "k", l)
	for _, srv := range ns.srv[:2] {
		srv.Kill()
	}
	if h2, err := second.TryAcquire(t.Context(), "k", l); err == nil {
		t.Fatalf("%v by one node of three", h2)
	}
	testredis.Eventually(t, 10*time.Second, func() bool { return h.Err() != nil && ns.on("k", metaKey("k")) == 0 },
		"the lease is over, for its holder and for the node that is left")
	var wg sync.WaitGroup
	for _, srv := range ns.srv[:2] {
		wg.Go(srv.Restart)
	}
	wg.Wait()
	var h2 *lock.Handle
	testredis.Eventually(t, 20*time.Second, func() bool {
		var err error
		h2, err = second.TryAcquire(t.Context(), "k", lease())
		return err == nil
	}, "they vote again")
	if err := h2.Err(); err != nil {
		t.Fatalf("the second holder: %v", err)
	}
	if !errors.Is(h.Err(), lock.ErrLost) || h.Context().Err() == nil || h.Validity() != 0 {
		t.Errorf("two holders: the first one says %v, valid for %s", h.Err(), h.Validity())
	}
	if h2.Fence() <= h.Fence() {
		t.Errorf("fence %d after %d", h2.Fence(), h.Fence())
	}
	mustRelease(t, h2)
}

// Two of three nodes are away: the acquire ends in time, and nothing stays on the
// third, nor on the two once they are back with what lay on the way.
// fault: 20
func TestRedlockPartition(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*testredis.Proxy){
		"refused": (*testredis.Proxy).Cut,
		"silent":  func(p *testredis.Proxy) { p.Freeze(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, 3)
			c := ns.open(t, redlock.Options{Options: lock.Options{Timeout: 700 * time.Millisecond}})
			for _, p := range ns.proxy[1:] {
				away(p)
			}
			began := time.Now()
			_, err := c.TryAcquire(t.Context(), "k", lock.Lease{TTL: 20 * time.Second})
			failed, ok := errors.AsType[*redlock.QuorumError](err)
			// One node works; those that refuse at once may be quicker.
			if !ok || failed.Need != 2 || failed.Got > 1 || failed.Got+len(failed.Nodes) != 3 {
				t.Fatalf("got %v", err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("failed after %s", took)
			}
			testredis.Eventually(t, 3*time.Second, func() bool { return exists(t, ns.near[0], "k", metaKey("k")) == 0 },
				"the node that answers is cleared at once")
			for _, p := range ns.proxy[1:] {
				p.Heal()
			}
			ns.gone(t, "k", 10*time.Second)
			testredis.Eventually(t, 10*time.Second, func() bool {
				h, err := c.TryAcquire(t.Context(), "k", lease())
				return err == nil && h.Release(t.Context()) == nil
			}, "the lock can be had again")
		})
	}
}
