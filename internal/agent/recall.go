package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// begin takes back what was known of the target before the restart.
func (w *watched) begin(ctx context.Context) {
	err := w.recall(ctx)
	known := err != nil || w.remembers
	w.mu.Lock()
	for range w.agent.engine.FindingsOn(w.target.Name).All() {
		known = true
		break
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		w.log.Error("findings of the last run cannot be read: they are forgotten, and told again if they are still there", zap.Error(err))
		w.recalled = true
	case err != nil:
		// Written over they would be lost, and nobody would hear that one of them ended.
		w.behind, w.again = 1, time.Now().Add(keepEvery)
		w.log.Error("findings of the last run are not known yet: nothing is written before they are", zap.Error(err))
	}
	w.mu.Unlock()
	w.restoreSurvey(ctx, known)
	w.restoreOrders(ctx)
	w.restoreHolds(ctx)
}

// recall puts the findings that the store has back into the engine. Of one that was
// found meanwhile, while the store did not work, what is known now counts.
func (w *watched) recall(ctx context.Context) error {
	w.mu.Lock()
	recalled := w.recalled
	w.mu.Unlock()
	if recalled {
		return nil
	}
	findings, err := w.agent.store.LoadFindings(ctx, w.target.Name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	here := map[string]bool{}
	for f := range w.agent.engine.FindingsOn(w.target.Name).All() {
		here[f.Fingerprint()] = true
	}
	findings = slices.DeleteFunc(findings, func(f locksteward.Finding) bool { return here[f.Fingerprint()] })
	w.agent.engine.Restore(findings)
	w.memories.markAll(findings)
	w.recalled = true
	return nil
}
