package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/internal/testredis"
	"github.com/locksteward/locksteward/lock"
)

// fasten lets the server's clock run rate times as fast as this machine's until
// the function returned is called.
func fasten(b *bed, rate float64) (stop func()) {
	began, end, done := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				b.clock.Set(time.Hour + time.Duration(float64(time.Since(began))*(rate-1)))
			case <-end:
				return
			}
		}
	}()
	return func() { close(end); <-done }
}

// A server whose clock runs up to 1 % faster ends no lease before its holder
// knows; that is the ratio that the package comment names. One that runs twice as
// fast lets a lease that nobody renews go while its holder still has half of it:
// the control. Renewals come in time for it all the same.
func TestClocksThatRunApart(t *testing.T) {
	faults.Covers(t, 12)
	for _, rate := range []float64{0.5, 1.009, 2} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			b := newClocked(t)
			c := b.open(0, lock.Options{Timeout: busyTimeout})
			defer fasten(b, rate)()
			const ttl = time.Second
			renewed, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: ttl})
			if err != nil {
				t.Fatal(err)
			}
			h, err := c.Acquire(t.Context(), b.locks[1], lock.Lease{TTL: ttl, NoRenew: true})
			if err != nil {
				t.Fatal(err)
			}
			testredis.Eventually(t, 5*ttl, func() bool {
				return b.admin.Exists(context.Background(), b.locks[1]).Val() == 0
			}, "the lease ends on the server")
			switch err := h.Err(); {
			case rate < 1.01 && !errors.Is(err, lock.ErrLost):
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
		})
	}
}
