package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/store"
)

// elsewhere are the targets that a replica has in its configuration.
func (a *Agent) elsewhere(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	if a.member == nil {
		return out, nil
	}
	members, err := a.store.Membership(ctx)
	for _, r := range members.Replicas {
		for _, name := range r.Targets {
			out[name] = true
		}
	}
	return out, err
}

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
	elsewhere, err := a.elsewhere(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if a.configured(name) || elsewhere[name] {
			continue
		}
		findings, err := a.store.LoadFindings(ctx, name)
		if err != nil {
			return err
		}
		a.engine.Restore(findings)
		var ended []locksteward.Transition
		for _, t := range a.engine.RemoveTarget(name, time.Now()) {
			if rules.Notifies(t.Finding) {
				ended = append(ended, t)
			}
		}
		if err := a.store.SaveFindings(ctx, name, nil, store.Outgoing{Events: a.alerts.Events(ended, nil, nil)}); err != nil {
			return err
		}
		a.log.Info("findings of a target that is watched no longer ended", zap.String("target", name), zap.Int("findings", len(findings)))
	}
	return nil
}
