package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// ticker is the server's clock that is set anew every millisecond.
type ticker struct {
	mu     sync.Mutex
	set    time.Time // the server's clock is not older than what was true then
	behind time.Duration
	end    chan struct{}
	done   chan struct{}
}

// fasten lets the server's clock run rate times as fast as this machine's until
// it is stopped.
func fasten(b *bed, rate float64) *ticker {
	began := time.Now()
	k := &ticker{set: began, end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(k.done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				now := time.Now()
				b.clock.Set(time.Hour + time.Duration(float64(now.Sub(began))*(rate-1)))
				k.mu.Lock()
				k.behind, k.set = max(k.behind, time.Since(k.set)), now
				k.mu.Unlock()
			case <-k.end:
				return
			}
		}
	}()
	return k
}

func (k *ticker) stop() { close(k.end); <-k.done }

// lag returns for how long at most the clock was not set since it was last asked.
func (k *ticker) lag() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := max(k.behind, time.Since(k.set))
	k.behind = 0
	return d
}

// A server whose clock runs up to 1 % faster, that included, ends no lease before
// its holder knows; that is the ratio that the package comment names. One that
// runs 5 % or twice as fast lets a lease that nobody renews go while its holder
// still has some of it: the control. Renewals come in time for it all the same.
// fault: 12
func TestClocksThatRunApart(t *testing.T) {
	for _, tc := range []struct {
		rate float64
		// ttl makes what the clocks are apart at the end of the lease longer than a
		// busy machine takes to look, and what is left after a renewal longer than it stands still.
		ttl time.Duration
	}{
		{0.5, 3 * time.Second},
		{1.009, 3 * time.Second},
		{1.01, 15 * time.Second},
		{1.05, 15 * time.Second},
		{2, 8 * time.Second},
	} {
		t.Run(fmt.Sprint(tc.rate), func(t *testing.T) {
			t.Parallel()
			runApart(newClocked(t), tc.rate, tc.ttl)
		})
	}
}

func runApart(b *bed, rate float64, ttl time.Duration) {
	t := b.t
	c := b.open(0, lock.Options{Timeout: busyTimeout})
	server := fasten(b, rate)
	defer server.stop()
	renewed, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	// A clock that catches up after the lease has begun takes that from it.
	var h *lock.Handle
	testredis.Eventually(t, 30*time.Second, func() bool {
		server.lag()
		if h, err = c.Acquire(t.Context(), b.locks[1], lock.Lease{TTL: ttl, NoRenew: true}); err != nil {
			t.Fatal(err)
		}
		if server.lag() < 50*time.Millisecond {
			return true
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		return false
	}, "the server's clock runs evenly while the lock is taken")
	testredis.Eventually(t, 5*ttl, func() bool {
		return b.admin.Exists(context.Background(), b.locks[1]).Val() == 0
	}, "the lease ends on the server")
	switch err := h.Err(); {
	case rate <= 1.01 && !errors.Is(err, lock.ErrLost):
		t.Errorf("the server has let the lock go and the holder has it: %v", err)
	case rate > 1.01 && err != nil:
		t.Errorf("the control: want the holder to believe in its lock, got %v", err)
	}
	if rate > 1.01 {
		next, err := b.open(0, lock.Options{Timeout: busyTimeout}).TryAcquire(t.Context(), b.locks[1], lock.Lease{TTL: ttl, NoRenew: true})
		if err != nil {
			t.Fatal(err)
		}
		if next.Fence() <= h.Fence() {
			t.Errorf("fence %d of the second holder, %d of the first", next.Fence(), h.Fence())
		}
		if err := h.Extend(t.Context(), 0); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the first holder asks: %v", err)
		}
	}
	if err := renewed.Err(); err != nil {
		t.Errorf("the hold that is renewed: %v", err)
	}
	if err := renewed.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
