package targets

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// ResolveGone ends the findings of targets that are watched no longer: their
// target was taken out of the configuration while no agent ran, or the store did
// not work then. Else their alerts would stand for ever. No configuration may change meanwhile.
func (d Deps) ResolveGone(ctx context.Context, isWatched func(target string) bool) error {
	names, err := d.Store.FindingTargets(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if isWatched(name) {
			continue
		}
		findings, err := d.endFindings(ctx, name, time.Now())
		if err != nil {
			return err
		}
		d.Log.Info("findings of a target that is watched no longer ended", zap.String("target", name), zap.Int("findings", findings))
	}
	return nil
}
