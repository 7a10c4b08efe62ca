package redis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/source"
)

// TestRoundsTakeTheBusyShare: looking again at locks that nobody reports is
// held to pace.busy; what a push named is booked apart.
func TestRoundsTakeTheBusyShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(&Source{log: zap.NewNop(), host: new(testHost), throttle: source.NewThrottle(nil), pace: pace.Config{Busy: 0.05}, servers: map[string]*pace.Server{}, hosts: new(pace.Hosts)})
		n := &nodeWatch{w: w, reads: newReadCost()}
		call := func(r *reader) {
			if err := r.call(t.Context(), 1, func() error { time.Sleep(10 * time.Microsecond); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		call(n.reader(nil))
		if began := time.Now(); w.pollBudget.wait(t.Context()) != nil || time.Since(began) != 0 {
			t.Error("a round waits for what a push reported")
		}
		if err := w.watchBudget.wait(t.Context()); err != nil {
			t.Fatal(err)
		}

		began := time.Now()
		var worked time.Duration
		for range 50 {
			call(n.reader(w.pollBudget))
			worked += n.reads.of(1, 10*time.Microsecond)
			for _, b := range []*budget{w.watchBudget, w.pollBudget} {
				if err := b.wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if share := float64(worked) / float64(time.Since(began)); share > 0.05001 || share < 0.049 {
			t.Errorf("rounds took %.4f of the server's time, want at most 0.05", share)
		}
	})
	without := newWatcher(&Source{log: zap.NewNop(), throttle: source.NewThrottle(nil), unpaced: true})
	without.pollBudget.spend(time.Hour)
	if err := without.pollBudget.wait(context.Background()); err != nil || without.watchBudget.share != 1 {
		t.Errorf("without a limit: %v", err)
	}
}
