package lock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

func TestSessionTakesAgainWhatItHas(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := lock.WithSession(t.Context())
	if lock.WithSession(ctx) != ctx {
		t.Fatal("sessions")
	}
	outer, err := b.client.Acquire(ctx, "k", lease())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := b.client.TryAcquire(ctx, "k", lock.Lease{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if inner.ID() != outer.ID() || inner.Fence() != outer.Fence() {
		t.Errorf("a second hold: %s %d, %s %d", outer.ID(), outer.Fence(), inner.ID(), inner.Fence())
	}
	if m := meta(t, b.rdb, "k"); m.Holds != 2 || m.Session == "" {
		t.Errorf("metadata: holds %d, session %q", m.Holds, m.Session)
	}
	if v := outer.Validity(); v < 50*time.Second {
		t.Errorf("a longer lease was asked for, validity is %s", v)
	}
	if _, err := b.client.TryAcquire(t.Context(), "k", lease()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("somebody else: %v", err)
	}
	// In whatever order: each handle ends for itself.
	mustRelease(t, outer)
	if outer.Context().Err() == nil || !errors.Is(context.Cause(outer.Context()), lock.ErrReleased) || !errors.Is(outer.Err(), lock.ErrReleased) {
		t.Error("released handle has not ended")
	}
	if err := inner.Err(); err != nil {
		t.Errorf("the other handle: %v", err)
	}
	mustRelease(t, outer) // a second time changes nothing
	if err := inner.Extend(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if m := meta(t, b.rdb, "k"); m.Holds > 1 {
		t.Errorf("holds %d after an inner release and a renewal", m.Holds)
	}
	mustRelease(t, inner)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
	if n := len(b.events.of(lock.EventReleased)); n != 1 {
		t.Errorf("%d releases", n)
	}
	if n := len(b.events.of(lock.EventReentered)); n != 1 {
		t.Errorf("%d re-entries", n)
	}
	again, err := b.client.Acquire(ctx, "k", lease())
	if err != nil || again.ID() == outer.ID() {
		t.Errorf("a new hold: %v, %v", again, err)
	}
	mustRelease(t, again)
}

// B7: the watchdog goes on after an inner release, and a re-entry never shortens
// the lease.
func TestRenewalGoesOnAfterInnerRelease(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := lock.WithSession(t.Context())
	outer, err := b.client.Acquire(ctx, "k", lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := b.client.Acquire(ctx, "k", lock.Lease{TTL: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, inner)
	n := len(b.events.of(lock.EventRenewed))
	b.events.wait(t, lock.EventRenewed, n+4, 20*time.Second)
	if err := outer.Err(); err != nil {
		t.Error(err)
	}
	mustRelease(t, outer)
}

// A session that lost its lock is told so when it takes it again: it must not go
// on as if nothing had happened.
func TestReentryOfALostLock(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := lock.WithSession(t.Context())
	outer, err := b.client.Acquire(ctx, "k", lease())
	if err != nil {
		t.Fatal(err)
	}
	b.rdb.Del(t.Context(), "k")
	if _, err := b.client.Acquire(ctx, "k", lease()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("first: %v", err)
	}
	if _, err := b.client.Acquire(ctx, "k", lease()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("second: %v", err)
	}
	if outer.Context().Err() == nil {
		t.Error("outer handle goes on")
	}
	if err := outer.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v", err)
	}
	h, err := b.client.Acquire(ctx, "k", lease())
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, h)
}

// Metadata tells in which order a session took its locks.
func TestMetadataTellsWhatElseTheSessionHolds(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := lock.WithSession(t.Context())
	var handles []*lock.Handle
	for _, key := range []string{"a", "b c", "{d}"} {
		h, err := b.client.Acquire(ctx, key, lease())
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	for key, want := range map[string][]string{"a": nil, "b c": {"a"}, "{d}": {"a", "b c"}} {
		if got := meta(t, b.rdb, key).Holding; !slices.Equal(got, want) {
			t.Errorf("%q: holding %q, want %q", key, got, want)
		}
	}
	mustRelease(t, handles[0])
	h, err := b.client.Acquire(ctx, "e", lease())
	if err != nil {
		t.Fatal(err)
	}
	if got := meta(t, b.rdb, "e").Holding; !slices.Equal(got, []string{"b c", "{d}"}) {
		t.Errorf("after a release: %q", got)
	}
	for _, h := range append(handles[1:], h) {
		mustRelease(t, h)
	}
}

// Two goroutines of a session that want the same lock at the same time share
// one hold; a third one with another session waits for the last release.
func TestSessionFromManyGoroutines(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := lock.WithSession(t.Context())
	const n = 16
	var (
		mu      sync.Mutex
		handles []*lock.Handle
		wg      sync.WaitGroup
	)
	for range n {
		wg.Go(func() {
			h, err := b.client.Acquire(ctx, "k", lease())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			handles = append(handles, h)
		})
	}
	wg.Wait()
	for _, h := range handles {
		if h.ID() != handles[0].ID() {
			t.Fatalf("holds %s and %s", h.ID(), handles[0].ID())
		}
	}
	if err := handles[0].Extend(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if m := meta(t, b.rdb, "k"); m.Holds != n {
		t.Errorf("holds %d", m.Holds)
	}
	for _, h := range handles {
		wg.Go(func() {
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, "k", metaKey("k")) == 0 }, "free")
}

// A session that waits for the end of another goroutine's acquire minds its
// context.
func TestSessionDoorMindsTheContext(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	other := mustAcquire(t, b.client, "k", lease())
	ctx := lock.WithSession(t.Context())
	first, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := b.client.Acquire(first, "k", lease())
		done <- err
	}()
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, waiterKey("k")) == 1 }, "waits")
	short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	if _, err := b.client.Acquire(short, "k", lease()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	mustRelease(t, other)
}
