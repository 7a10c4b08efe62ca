package chaos_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// tryAgain finds how often a node has refused a script since the keys of one
// slot were not all on the same node.
var tryAgain = regexp.MustCompile(`errorstat_TRYAGAIN:count=(\d+)`)

// refused adds that up over the nodes.
func (b *bed) refused() int {
	b.t.Helper()
	sum := 0
	for _, n := range b.cluster.Nodes {
		for _, m := range tryAgain.FindAllStringSubmatch(fmt.Sprint(b.on(n, "INFO", "errorstats")), -1) {
			count, err := strconv.Atoi(m[1])
			if err != nil {
				b.t.Fatal(err)
			}
			sum += count
		}
	}
	return sum
}

// tear moves key alone to another node while its slot is being moved. The
// function returned moves what else is in the slot, and the slot.
func tear(b *bed, key string) (mend func()) {
	b.t.Helper()
	from := b.cluster.NodeOf(key)
	to := b.cluster.Nodes[(slices.Index(b.cluster.Nodes, from)+1)%len(b.cluster.Nodes)]
	slot := b.on(from, "CLUSTER", "KEYSLOT", key).(int64)
	fromID, toID := b.on(from, "CLUSTER", "MYID"), b.on(to, "CLUSTER", "MYID")
	host, port, _ := strings.Cut(to.Addr(), ":")
	move := func(keys ...any) {
		b.t.Helper()
		b.on(from, append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, keys...)...)
	}
	b.on(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	b.on(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	move(key)
	left := b.on(from, "CLUSTER", "GETKEYSINSLOT", slot, 100).([]any)
	if len(left) == 0 {
		b.t.Fatal("the lock has one key only: this tests nothing")
	}
	return func() {
		b.t.Helper()
		move(left...)
		for _, n := range append([]*testredis.Server{to, from}, b.cluster.Nodes...) {
			b.on(n, "CLUSTER", "SETSLOT", slot, "NODE", toID)
		}
	}
}

// torn tears key, runs ask in the background and returns when scripts have been
// refused more often than the client of the Cluster sends two by itself: somebody
// asks again.
func (b *bed) torn(key string, ask func() error) (mend func(), done <-chan error) {
	b.t.Helper()
	const often = 12
	mend = tear(b, key)
	before, answer := b.refused(), make(chan error, 1)
	go func() { answer <- ask() }()
	testredis.Eventually(b.t, 20*time.Second, func() bool { return b.refused() >= before+often },
		"scripts are refused with TRYAGAIN again and again")
	return mend, answer
}

// Fault 37: the keys of one lock are on two nodes while its slot moves, so that
// no script that needs them all can run. Renewals ask again until the slot has
// moved, and the lock stays what it was.
// fault: 37
func TestRenewalWhileKeysAreOnTwoNodes(t *testing.T) {
	t.Parallel()
	b := newCluster(t)
	key := b.locks[0]
	c := b.open(0, lock.Options{Timeout: 30 * time.Second})
	h, err := c.Acquire(t.Context(), key, lock.Lease{TTL: time.Minute, RenewFraction: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	fence := h.Fence()
	mend, _ := b.torn(key, func() error { return nil }) // it is renewed anyway
	last := until(h)
	mend()
	testredis.Eventually(t, 20*time.Second, func() bool { return until(h).After(last.Add(100 * time.Millisecond)) }, "the lock is renewed after the move")
	if err := h.Extend(t.Context(), 0); err != nil || h.Fence() != fence {
		t.Errorf("extend after the move: %v, fence %d, before %d", err, h.Fence(), fence)
	}
	if left := b.admin.PTTL(t.Context(), key).Val(); left < 30*time.Second {
		t.Errorf("the lock has a TTL of %s after the move, want some 60s", left)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	b.leftovers()
}

// Fault 37: an Extend in the middle of the move asks again as well. Where the slot
// does not move in time, it says why it failed, and the lock stays what it was.
// fault: 37
func TestExtendWhileKeysAreOnTwoNodes(t *testing.T) {
	t.Parallel()
	b := newCluster(t)
	key := b.locks[0]
	patient, hasty := b.open(0, lock.Options{Timeout: 30 * time.Second}), b.open(1, lock.Options{Timeout: 5 * time.Second})
	lease := lock.Lease{TTL: 2 * time.Minute, NoRenew: true} // nothing but Extend asks
	h, err := patient.Acquire(t.Context(), key, lease)
	if err != nil {
		t.Fatal(err)
	}
	mend, extended := b.torn(key, func() error { return h.Extend(t.Context(), 10*time.Minute) })
	mend()
	if err := <-extended; err != nil {
		t.Errorf("extend in the middle of the move: %v", err)
	}
	if left := b.admin.PTTL(t.Context(), key).Val(); left < 9*time.Minute || h.Validity() < 9*time.Minute {
		t.Errorf("the lock has a TTL of %s and is valid for %s, want some 10m", left, h.Validity())
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}

	if h, err = hasty.Acquire(t.Context(), key, lease); err != nil {
		t.Fatal(err)
	}
	end := until(h)
	mend, extended = b.torn(key, func() error { return h.Extend(t.Context(), 10*time.Minute) })
	refusal, ok := errors.AsType[*lock.ServerError](<-extended)
	if !ok || refusal.Code != lock.CodeUnavailable || !refusal.Temporary() || !strings.HasPrefix(refusal.Err.Error(), "TRYAGAIN") {
		t.Errorf("extend while the slot does not move: %v, want TRYAGAIN", refusal)
	}
	if d := until(h).Sub(end); d < -time.Second || d > time.Second {
		t.Errorf("the lease ends %s later after an extend that failed", d)
	}
	mend()
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	b.leftovers()
}

// Fault 37: who wants such a lock, and who gives it back, ask again as well.
// fault: 37
func TestAcquireAndReleaseWhileKeysAreOnTwoNodes(t *testing.T) {
	t.Parallel()
	b := newCluster(t)
	key := b.locks[0]
	patient := lock.Options{Timeout: 30 * time.Second}
	holder, waiter := b.open(0, patient), b.open(1, patient)
	lease := lock.Lease{TTL: 2 * time.Minute, NoRenew: true}
	h, err := holder.Acquire(t.Context(), key, lease)
	if err != nil {
		t.Fatal(err)
	}
	var next *lock.Handle
	mend, acquired := b.torn(key, func() (err error) {
		next, err = waiter.Acquire(t.Context(), key, lease)
		return err
	})
	mend()
	if err := h.Release(t.Context()); err != nil {
		t.Fatalf("release: %v", err)
	}
	if err := <-acquired; err != nil {
		t.Fatalf("acquire: %v", err)
	}
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d of the second holder, %d of the first", next.Fence(), h.Fence())
	}
	// A lock that was handed over ends after its turn unless its holder can confirm it.
	testredis.Eventually(t, 20*time.Second, func() bool { return next.Validity() > time.Minute || next.Err() != nil }, "the hold is confirmed")
	mend, released := b.torn(key, func() error { return next.Release(t.Context()) })
	mend()
	if err := <-released; err != nil {
		t.Errorf("release in the middle of the move: %v", err)
	}
	b.leftovers()
}
