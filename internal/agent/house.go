package agent

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Histories of locks that were not seen for this long are forgotten: their
// target is watched no longer, or nobody would recognise the hold.
const (
	historyKept = 30 * 24 * time.Hour
	houseEvery  = time.Hour
)

// keepHouse forgets what is too old until ctx ends.
func (a *Agent) keepHouse(ctx context.Context) error {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	for {
		if n, err := a.store.PruneHistory(ctx, time.Now().Add(-historyKept)); err != nil && ctx.Err() == nil {
			a.log.Warn("old histories are not forgotten", zap.Error(err))
		} else if n > 0 {
			a.log.Info("old histories forgotten", zap.Int64("rows", n))
		}
		if _, err := a.store.PruneHolds(ctx, time.Now().Add(-holdsKept)); err != nil && ctx.Err() == nil {
			a.log.Warn("old holds are not forgotten", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
