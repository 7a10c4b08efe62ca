package scanner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/internal/pace"
)

func TestBudgetHoldsTheShare(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.01, 0.02, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(share, newThrottle())
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
			if waited := b.throttle.throttled()[ReasonWatch]; waited != time.Since(began)-calls*each {
				t.Errorf("waited %s for the share, want %s", waited, time.Since(began)-calls*each)
			}
		})
	}
}

func TestBudgetWithoutLimitNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1, newThrottle())
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
		b := newBudget(0.01, newThrottle())
		b.spend(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := b.wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("waited %s: %v", time.Since(began), err)
		}
	})
}

// The waits for a server's pace are counted by the reason that the pace gives.
func TestThrottleCountsReasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		throttle, server := newThrottle(), new(pace.Host).Server(pace.Config{})
		server.Spend(time.Now(), time.Millisecond) // nothing is known of it: the busy bound, 1 %
		began := time.Now()
		if err := throttle.wait(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		if err := throttle.pause(t.Context(), ReasonBusy, time.Second); err != nil {
			t.Fatal(err)
		}
		got := throttle.throttled()
		waited := time.Since(began) - time.Second
		if waited < 70*time.Millisecond || waited > 100*time.Millisecond || got[Reason(pace.Starting)] != waited || got[ReasonBusy] != time.Second {
			t.Errorf("waited %s; %v", waited, got)
		}
		if len(got) != len(Reasons()) {
			t.Errorf("reasons %v, want all of %v", got, Reasons())
		}
	})
}
