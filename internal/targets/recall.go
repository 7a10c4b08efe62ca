package targets

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// begin takes back what was known of the target before the restart.
func (w *Watched) begin(ctx context.Context) {
	err := w.recall(ctx)
	known := err != nil || w.remembers
	endTurn := w.turn.take()
	for range w.deps.Engine.FindingsOn(w.target.Name).All() {
		known = true
		break
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		w.log.Error("findings of the last run cannot be read: they are forgotten, and notified again if they are still there", zap.Error(err))
		w.recalled = true
	case err != nil:
		// Written over they would be lost, and nobody would hear that one of them ended.
		w.backlog.begin(time.Now().Add(keepEvery), false)
		w.log.Error("findings of the last run are not known yet: nothing is written before they are", zap.Error(err))
	}
	endTurn()
	if err := w.deps.Releases.Recall(ctx); err != nil {
		w.log.Error("which placeholders the last run put in the place of locks is not known yet: until it is, they are shown as unverified locks", zap.Error(err))
	}
	w.restoreFirstSweep(ctx, known)
	w.restoreOrders(ctx)
	w.restoreHolds(ctx)
	if err == nil {
		w.recallReleases(ctx)
	}
	defer w.turn.take()()
	w.deps.Exporter.SetFindings(w.target.Name, w.deps.Engine.FindingsOn(w.target.Name).Outlines())
	w.restored.Store(true)
}

// recallReleases ends what fires on holds that were released just before the last run
// ended: it was killed before it read those locks again.
func (w *Watched) recallReleases(ctx context.Context) {
	var since time.Time
	for f := range w.deps.Engine.FindingsOn(w.target.Name).Outlines() {
		if f.Key != "" && (since.IsZero() || f.Since.Before(since)) {
			since = f.Since
		}
	}
	if since.IsZero() {
		return
	}
	list, err := w.deps.Store.ListActs(ctx, later(since, time.Now().Add(-actsRecalled)))
	if err != nil {
		w.log.Warn("what was released before the restart is not known: the first sweep tells", zap.Error(err))
		return
	}
	w.endReleased(ctx, list)
}

// actsRecalled is how far back releases are looked at after a start.
const actsRecalled = 7 * 24 * time.Hour

// endReleased ends the findings on holds that requests released, newest first, if
// nothing else is known of their locks: what began after the release is about another
// hold, and what was undone holds on.
func (w *Watched) endReleased(ctx context.Context, list []locksteward.Request) {
	defer w.turn.take()()
	seen := map[scanner.HistoryKey]bool{}
	var endings []locksteward.Ending
	for _, r := range list {
		e := r.Evidence
		at := scanner.HistoryKey{DB: e.DB, Key: e.Key}
		if e.Target != w.target.Name || seen[at] {
			continue
		}
		seen[at] = true
		if _, known := w.scanner.Table().Get(e.DB, e.Key); known || r.State != locksteward.RequestReleased || e.Act == locksteward.ActUndo {
			continue
		}
		findings := w.deps.Engine.FindingsFor(w.target.Name, e.DB, e.Key)
		if len(findings) == 0 || slices.ContainsFunc(findings, func(f locksteward.Finding) bool { return f.Since.After(r.FinishedAt) }) {
			continue
		}
		end := locksteward.Ending{How: locksteward.EndedDeleted, At: r.FinishedAt}
		end.Lock.Target, end.Lock.DB, end.Lock.Key, end.Lock.Class = e.Target, e.DB, e.Key, e.Class
		endings = append(endings, end)
	}
	if len(endings) == 0 {
		return
	}
	transitions := w.deps.Engine.EvaluateDirect(locksteward.Update{Target: w.target.Name, At: time.Now(), Endings: endings})
	w.found(transitions)
	w.tell(ctx, transitions)
	w.unshown = true
	w.log.Info("findings on locks that were released before ended", zap.Int("locks", len(endings)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// recall puts the findings that the store has back into the engine. Of one that was
// found meanwhile, while the store did not work, what is known now counts.
func (w *Watched) recall(ctx context.Context) error {
	endTurn := w.turn.take()
	recalled := w.recalled
	endTurn()
	if recalled {
		return nil
	}
	findings, err := w.deps.Store.LoadFindings(ctx, w.target.Name)
	if err != nil {
		return err
	}
	defer w.turn.take()()
	here := map[string]bool{}
	for f := range w.deps.Engine.FindingsOn(w.target.Name).All() {
		here[f.Fingerprint()] = true
	}
	findings = slices.DeleteFunc(findings, func(f locksteward.Finding) bool { return here[f.Fingerprint()] })
	w.deps.Engine.Restore(findings)
	w.memories.markAll(findings)
	w.recalled = true
	return nil
}
