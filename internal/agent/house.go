package agent

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Histories of locks that were not seen for this long are forgotten: their
// target is watched no longer, or nobody would recognise the hold. Messages that
// arrived are kept for questions, those that did not for a replay.
const (
	historyKept   = 30 * 24 * time.Hour
	deliveredKept = 7 * 24 * time.Hour
	deadKept      = 30 * 24 * time.Hour
	houseEvery    = time.Hour
)

// keepHouse forgets what is too old until ctx ends.
func (a *Agent) keepHouse(ctx context.Context) error {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	for {
		a.tidy(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (a *Agent) tidy(ctx context.Context) {
	if err := a.resolveGone(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("findings of targets that are watched no longer are not ended", zap.Error(err))
	}
	a.mu.RLock()
	keep, idle := a.cfg.Store, a.cfg.Console.SignIn.WithDefaults().Session.Idle
	a.mu.RUnlock()
	now := time.Now()
	for _, job := range []struct {
		what  string
		prune func() (int64, error)
	}{
		{"histories", func() (int64, error) { return a.store.PruneHistory(ctx, now.Add(-historyKept)) }},
		{"holds", func() (int64, error) { return a.store.PruneHolds(ctx, now.Add(-holdsKept)) }},
		{"events of locks", func() (int64, error) { return a.diary.prune(ctx) }},
		{"sessions", func() (int64, error) { return a.pruneSessions(ctx, idle) }},
		{"messages", func() (int64, error) { return a.store.PruneMessages(ctx, deliveredKept, deadKept) }},
		{"requests", func() (int64, error) {
			if keep.KeepRequests == 0 {
				return 0, nil
			}
			return a.store.PruneRequests(ctx, now.Add(-keep.KeepRequests))
		}},
		{"audit entries", func() (int64, error) {
			if keep.KeepAudit == 0 {
				return 0, nil
			}
			return a.store.PruneEntries(ctx, now.Add(-keep.KeepAudit))
		}},
	} {
		n, err := job.prune()
		if err != nil && ctx.Err() == nil {
			a.log.Warn("old "+job.what+" are not forgotten", zap.Error(err))
		} else if n > 0 {
			a.log.Info("old "+job.what+" forgotten", zap.Int64("rows", n))
		}
	}
	if err := a.trail.Pruned(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("the begin of the audit trail is not signed", zap.Error(err))
	}
	if size, err := a.store.Size(ctx); err == nil {
		a.log.Info("store", zap.Int64("bytes", size.Bytes), zap.Int64("audit_entries", size.Entries))
	}
}
