package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/targets"
)

// For how long rows are kept. Histories of locks that were not seen for so long are of no use: their target is not watched
// any more, or the hold is another one. Delivered notifications are kept for questions, dead letters for a retry.
const (
	historyKept   = 30 * 24 * time.Hour
	deliveredKept = 7 * 24 * time.Hour
	deadKept      = 30 * 24 * time.Hour
	silencesKept  = 90 * 24 * time.Hour
	pruneInterval = time.Hour
)

// singletonDuties is the work that belongs to no target, and that one replica does at a time. The member of the cluster
// starts and stops it, never at once; see [store.SingletonDuties].
type singletonDuties struct {
	active atomic.Bool
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// isActive reports whether this replica does them.
func (s *singletonDuties) isActive() bool { return s.active.Load() }

// startSingletonDuties sends notifications, signs and ships the audit trail, and deletes old rows, until
// stopSingletonDuties. The end of ctx ends only the deletion: the last transitions of the targets come after it.
func (a *Agent) startSingletonDuties(ctx context.Context) {
	s := &a.singleton
	ctx, s.cancel = context.WithCancel(ctx)
	s.active.Store(true)
	a.trail.Start(ctx)
	a.alerts.Start(ctx)
	s.work.Go(func() { a.prune(ctx) })
	a.countRequests(ctx)
}

// stopSingletonDuties stops them in order: the last notifications are sent and the last audit entries shipped, within the
// bounds of both.
func (a *Agent) stopSingletonDuties(ctx context.Context) {
	s := &a.singleton
	if !s.active.Swap(false) {
		return
	}
	s.cancel()
	s.work.Wait()
	a.alerts.Stop()
	a.trail.Stop(ctx)
	a.exporter.ClearSingletonMetrics()
}

// prune deletes old rows every pruneInterval until ctx ends.
func (a *Agent) prune(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	for {
		a.pruneOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *Agent) pruneOnce(ctx context.Context) {
	if err := a.resolveGone(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("findings of targets that are no longer watched could not be resolved", zap.Error(err))
	}
	cfg := a.targets.Now().Config
	keep, idle := cfg.Store, cfg.Console.SignIn.WithDefaults().Session.Idle
	now := time.Now()
	for _, job := range []struct {
		what  string
		prune func() (int64, error)
	}{
		{"histories", func() (int64, error) { return a.store.PruneHistory(ctx, now.Add(-historyKept)) }},
		{"holds", func() (int64, error) { return a.store.PruneHolds(ctx, now.Add(-targets.HoldsKept)) }},
		{"events of locks", func() (int64, error) { return a.history.Prune(ctx) }},
		{"sessions", func() (int64, error) { return a.store.PruneSessions(ctx, now, now.Add(-idle)) }},
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
			a.log.Warn("old "+job.what+" could not be deleted", zap.Error(err))
		} else if n > 0 {
			a.log.Info("old "+job.what+" deleted", zap.Int64("rows", n))
		}
	}
	if a.member != nil {
		if _, err := a.member.Prune(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("replicas that vanished could not be deleted", zap.Error(err))
		}
	}
	if err := a.trail.Pruned(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("the beginning of the audit trail could not be signed", zap.Error(err))
	}
	if size, err := a.store.Size(ctx); err == nil {
		a.log.Info("store", zap.Int64("bytes", size.Bytes), zap.Int64("audit_entries", size.Entries))
	}
}
