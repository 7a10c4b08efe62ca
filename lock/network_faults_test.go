package lock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// At 1 kB/s each request takes a good part of a second: answers find their
// callers, and that time is off the lease.
// fault: 17
func TestLittleBandwidth(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	c := openThrough(t, b.srv, proxy, 10, lock.Options{Timeout: 20 * time.Second})
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	proxy.Bandwidth(1000)
	const ttl = 40 * time.Second
	handles := make(chan *lock.Handle, 4)
	for i := range cap(handles) {
		go func() {
			began := time.Now()
			h, err := c.Acquire(t.Context(), fmt.Sprint("k", i), lock.Lease{TTL: ttl, NoRenew: true})
			if err != nil {
				t.Error(err)
			} else if took := time.Since(began); h.Validity() > ttl-ttl/100-took/2 {
				// Counted from its sending: how long it took until then is the machine's.
				t.Errorf("valid for %s, %s after the request", h.Validity(), took)
			}
			handles <- h
		}()
	}
	for range cap(handles) {
		h := <-handles
		if h == nil {
			continue
		}
		if m := meta(t, b.rdb, h.Key()); m == nil || m.ID != h.ID() || m.Fence != h.Fence() {
			t.Errorf("%s: the server has %+v", h, m)
		}
		defer mustRelease(t, h)
	}
	proxy.Heal()
}

// The server is refused for a while, then every connection breaks again and
// again, two thousand times a minute: a client with a hold and a waiter dials ten
// times a second at most, and has no more connections afterwards than before.
// fault: 24
func TestBrokenConnectionsAreNotDialledInAStorm(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	// Long enough for the waiter to go on all the while.
	c := openThrough(t, b.srv, proxy, 10, lock.Options{Timeout: 20 * time.Second})
	h := mustAcquire(t, c, "held", lock.Lease{TTL: 20 * time.Second, RenewFraction: 0.02})
	defer mustRelease(t, h)
	other := mustAcquire(t, b.client, "k", lease())
	got := make(chan error, 1)
	go func() {
		h, err := c.Acquire(t.Context(), "k", lease())
		if err == nil {
			err = h.Release(t.Context())
		}
		got <- err
	}()
	queued(t, b.rdb, "k", 1)
	quiet := proxy.Open()

	// dialled runs f and returns the connections made meanwhile, and for how long.
	dialled := func(f func()) (int, time.Duration) {
		before, began := proxy.Accepted(), time.Now()
		f()
		return proxy.Accepted() - before, time.Since(began)
	}
	const spell = time.Second
	proxy.Cut()
	// The first pauses of all that dial are short: heartbeat, renewal, waiter and
	// subscriber. Ten dials are theirs, once.
	burst, took := dialled(func() { <-time.After(spell) })
	if most := int(10*took/time.Second) + 10; burst > most {
		t.Errorf("%d dials in the first %s, want at most %d", burst, took, most)
	}
	dials, took := dialled(func() { <-time.After(2 * spell) })
	if most := int(10 * took / time.Second); dials > most {
		t.Errorf("%d dials in the next %s, want at most %d", dials, took, most)
	}
	t.Logf("%d dials, then %d in %s while nothing answers", burst, dials, took)
	proxy.Heal()
	dials, took = dialled(func() {
		for range 100 {
			proxy.Cut()
			proxy.Heal()
			<-time.After(30 * time.Millisecond)
		}
	})
	if most := int(10 * took / time.Second); dials > most {
		t.Errorf("%d dials in %s of resets, want at most %d", dials, took, most)
	}
	t.Logf("%d dials in %s of a hundred resets", dials, took)
	if err := h.Err(); err != nil {
		t.Errorf("the hold: %v", err)
	}
	mustRelease(t, other)
	// An attempt whose reply was lost in every retry ends so, by the contract.
	if err := <-got; err != nil && !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("the waiter: %v", err)
	}
	testredis.Eventually(t, 10*time.Second, func() bool { return proxy.Open() <= quiet+1 }, fmt.Sprintf("connections go down to the %d of before", quiet))
}
