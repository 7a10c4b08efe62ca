package redis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/source"
)

func TestBudgetHoldsTheShare(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.01, 0.02, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(share, source.NewThrottle(nil))
			began := time.Now()
			const calls, each = 200, 300 * time.Microsecond
			for range calls {
				if err := b.wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(each) // the bubble's clock
				b.spend(each)
			}
			if err := b.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := float64(calls*each) / float64(time.Since(began))
			if got > share*1.0001 || got < share*0.99 {
				t.Errorf("share %g, want %g", got, share)
			}
			if waited := b.throttle.Waited()[source.ReasonWatch]; waited != time.Since(began)-calls*each {
				t.Errorf("waited %s for the share, want %s", waited, time.Since(began)-calls*each)
			}
		})
	}
}

func TestBudgetWithoutLimitNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1, source.NewThrottle(nil))
		began := time.Now()
		for range 1000 {
			b.spend(time.Second)
			if err := b.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("waited %s", time.Since(began))
		}
	})
}

func TestBudgetEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(0.01, source.NewThrottle(nil))
		b.spend(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := b.wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("waited %s: %v", time.Since(began), err)
		}
	})
}
