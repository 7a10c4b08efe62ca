package lock_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// Fault 30: nodes that come back without their memory when the longest lease is
// over harm nobody, without MinUptime too: by then the first holder knows.
// fault: 30
func TestRedlockRestartAfterTheTTL(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	first := ns.open(t, lock.RedlockOptions{})
	second := ns.open(t, lock.RedlockOptions{})
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
