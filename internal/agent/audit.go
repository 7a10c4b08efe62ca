package agent

import (
	"context"
	"io"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/audit"
)

// newTrail reads the key that signs the audit trail, and prepares its receivers.
func (a *Agent) newTrail(ctx context.Context, cfg config.Config, stdout io.Writer) error {
	if err := a.storeHealth.LookForLostTrail(ctx, cfg.Store); err != nil {
		return err
	}
	if _, err := a.storeHealth.LookForOlder(ctx); err != nil {
		return err
	}
	key, unsigned, err := audit.OpenKey(cfg.Store)
	if err != nil {
		return err
	}
	a.trail, err = audit.New(a.log, cfg.Audit, a.store, audit.Options{Key: key, Unsigned: unsigned, Stdout: stdout})
	return err
}
