package agent

import (
	"context"
	"sync"
	"sync/atomic"
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
	silencesKept  = 90 * 24 * time.Hour
	houseEvery    = time.Hour
)

// house is what belongs to no target, and is done by one replica at a time.
type house struct {
	open   atomic.Bool
	mu     sync.Mutex // one opens or closes at a time
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// openHouse sends what waits for receivers, signs and carries the audit trail and
// cleans up, until closeHouse. The end of ctx alone ends the cleaning: the last
// transitions of the targets come after it.
func (a *Agent) openHouse(ctx context.Context) {
	h := &a.house
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, h.cancel = context.WithCancel(ctx)
	h.open.Store(true)
	a.trail.Start(ctx)
	a.alerts.start(ctx)
	h.work.Go(func() { a.keepHouse(ctx) })
	a.countRequests(ctx)
}

// closeHouse ends what openHouse began, in order: what it did last is told and carried
// still, within the bounds of both.
func (a *Agent) closeHouse(ctx context.Context) {
	h := &a.house
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open.Swap(false) {
		return
	}
	h.cancel()
	h.work.Wait()
	a.alerts.stop()
	a.trail.Stop(ctx)
	a.exporter.LeaveHouse()
}

// opened says whether this replica has the house.
func (h *house) opened() bool { return h.open.Load() }

// keepHouse forgets what is too old until ctx ends.
func (a *Agent) keepHouse(ctx context.Context) {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	for {
		a.tidy(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *Agent) tidy(ctx context.Context) {
	if err := a.resolveGone(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("findings of targets that are watched no longer are not ended", zap.Error(err))
	}
	cfg := a.current().cfg
	keep, idle := cfg.Store, cfg.Console.SignIn.WithDefaults().Session.Idle
	now := time.Now()
	for _, job := range []struct {
		what  string
		prune func() (int64, error)
	}{
		{"histories", func() (int64, error) { return a.store.PruneHistory(ctx, now.Add(-historyKept)) }},
		{"holds", func() (int64, error) { return a.store.PruneHolds(ctx, now.Add(-holdsKept)) }},
		{"events of locks", func() (int64, error) { return a.diary.prune(ctx) }},
		{"sessions", func() (int64, error) { return a.pruneSessions(ctx, idle) }},
		{"notifications", func() (int64, error) { return a.store.PruneNotifications(ctx, deliveredKept, deadKept) }},
		{"changes", func() (int64, error) { return a.store.PruneEvents(ctx, deliveredKept) }},
		{"silences", func() (int64, error) { return a.store.PruneSilences(ctx, now.Add(-silencesKept)) }},
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
	if a.keeper != nil {
		if _, err := a.keeper.Prune(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("replicas that vanished are not forgotten", zap.Error(err))
		}
	}
	if err := a.trail.Pruned(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("the begin of the audit trail is not signed", zap.Error(err))
	}
	if size, err := a.store.Size(ctx); err == nil {
		a.log.Info("store", zap.Int64("bytes", size.Bytes), zap.Int64("audit_entries", size.Entries))
	}
}
