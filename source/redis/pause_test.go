package redis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

func TestPauseHoldsTheBudget(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.02, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := source.NewThrottle(nil)
			b := newBudget(share, s)
			if s.Resume() || s.Paused() != nil {
				t.Error("paused from the start")
			}
			began := time.Now()
			s.Pause(locksteward.Pause{By: "ann", Since: began})
			passed := make(chan error, 1)
			go func() { passed <- b.wait(t.Context()) }()
			time.Sleep(time.Hour)
			s.Pause(locksteward.Pause{By: "bob", Since: time.Now(), Until: time.Now().Add(time.Minute)})
			if p := s.Paused(); p == nil || p.By != "bob" {
				t.Errorf("paused: %+v", p)
			}
			if err := <-passed; err != nil || time.Since(began) != time.Hour+time.Minute {
				t.Errorf("passed after %s: %v", time.Since(began), err)
			}
			if s.Paused() != nil || s.Resume() {
				t.Error("paused after its end")
			}
			if got := s.Waited()[source.ReasonPaused]; got != time.Hour+time.Minute {
				t.Errorf("waited %s for the pause", got)
			}

			s.Pause(locksteward.Pause{Until: time.Now().Add(time.Hour)})
			if !s.Resume() || b.wait(t.Context()) != nil {
				t.Error("not resumed")
			}
			time.Sleep(2 * time.Hour) // the timer of what was resumed does nothing
			s.Pause(locksteward.Pause{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := b.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}
