package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
)

// resolveGone ends the findings of targets that are watched no longer: their
// target was taken out of the configuration while no agent ran, or the store did
// not work then. Else their alerts would stand for ever.
func (a *Agent) resolveGone(ctx context.Context) error {
	// A reload may be about to add or remove targets: the next time will do.
	if !a.reloading.TryLock() {
		return nil
	}
	defer a.reloading.Unlock()
	names, err := a.store.FindingTargets(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := a.watched(name); err == nil {
			continue
		}
		findings, err := a.store.LoadFindings(ctx, name)
		if err != nil {
			return err
		}
		a.engine.Restore(findings)
		var told []locksteward.Transition
		for _, t := range a.engine.RemoveTarget(name, time.Now()) {
			if rules.Notifies(t.Finding) {
				told = append(told, t)
			}
		}
		messages := a.alerts.Findings(told)
		if err := a.store.SaveFindings(ctx, name, nil, kept(messages)...); err != nil {
			return err
		}
		a.log.Info("findings of a target that is watched no longer ended", zap.String("target", name), zap.Int("findings", len(findings)))
	}
	return nil
}
