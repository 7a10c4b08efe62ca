package agent

import (
	"context"
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/audit"
)

// newTrail reads the key that signs the audit trail, and prepares its receivers.
func (a *Agent) newTrail(ctx context.Context, cfg config.Config, stdout io.Writer) error {
	if err := a.lookForLostTrail(ctx, cfg); err != nil {
		return err
	}
	if _, err := a.lookForOlderStore(ctx); err != nil {
		return err
	}
	key, unsigned, err := audit.OpenKey(cfg.Store)
	if err != nil {
		return err
	}
	a.trail, err = audit.New(a.log, cfg.Audit, a.store, audit.Options{Key: key, Unsigned: unsigned, Stdout: stdout})
	return err
}

// lookForLostTrail tells of an empty trail beside the key that signed one: an SQLite
// file that was emptied or is gone looks to the store like one that is new.
func (a *Agent) lookForLostTrail(ctx context.Context, cfg config.Config) error {
	file := audit.KeyFile(cfg.Store)
	if file == "" || cfg.Store.AuditKeyFile != "" { // a key of its own may be made before the store
		return nil
	}
	if _, err := os.Stat(file); err != nil {
		return nil // OpenKey says what is wrong, if that is
	}
	size, err := a.store.Size(ctx)
	if err == nil && size.Entries == 0 {
		a.log.Error("the store is empty, though the key that signs its audit trail is older: was its file lost? "+
			"If so, stop the agent and restore the last backup", zap.String("audit_key", file))
	}
	return err
}
