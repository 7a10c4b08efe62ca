package redis

import (
	"context"
	"sync"
	"time"

	"github.com/locksteward/locksteward/source"
)

// budget holds calls to a share of server time: after a call that took d, nothing is asked for d·(1/share − 1). The
// watch has budgets of its own; sweeps go by [pace.Server].
type budget struct {
	share    float64 // 1: no limit
	throttle *source.Throttle

	mu   sync.Mutex
	free time.Time // when all work so far is paid for
}

func newBudget(share float64, t *source.Throttle) *budget { return &budget{share: share, throttle: t} }

// spend books a call. It does not wait.
func (b *budget) spend(took time.Duration) {
	if b.share >= 1 || took <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(time.Duration(float64(took) * (1/b.share - 1)))
}

// wait returns when all work so far is paid for and no pause lasts, or with ctx's error.
func (b *budget) wait(ctx context.Context) error {
	for {
		if err := b.throttle.Pass(ctx); err != nil || b.share >= 1 {
			return err
		}
		b.mu.Lock()
		d := time.Until(b.free)
		b.mu.Unlock()
		if d <= 0 {
			return nil
		}
		if err := b.throttle.Sleep(ctx, source.ReasonWatch, d); err != nil {
			return err
		}
	}
}
