package agent

import (
	"context"
	"errors"
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
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

// trail is the audit trail as the console reads it.
type trail struct {
	store *store.Store
	trail *audit.Trail
}

func (t trail) Entries(ctx context.Context, q console.AuditQuery) ([]locksteward.Entry, error) {
	entries, err := t.store.Entries(ctx, store.EntryQuery{
		Subject: q.Subject, Target: q.Target, Key: q.Key, Actor: q.Actor, Action: q.Action, Search: q.Search,
		Since: q.Since, Until: q.Until, Before: q.Before, After: q.After, Ascending: q.Ascending, Limit: q.Limit,
	})
	return entries, stored(err)
}

func (t trail) Checkpoints(ctx context.Context, before int64, limit int) ([]api.Checkpoint, error) {
	list, err := t.store.Checkpoints(ctx, store.CheckpointQuery{Before: before, Limit: limit})
	out := make([]api.Checkpoint, 0, len(list))
	for _, c := range list {
		out = append(out, audit.View(c))
	}
	return out, stored(err)
}

func (t trail) VerifyAudit(ctx context.Context) (api.AuditVerified, error) {
	out, err := t.trail.Verify(ctx)
	return out, stored(err)
}

func (t trail) AuditStatus(ctx context.Context) (api.AuditStatus, error) {
	out, err := t.trail.Status(ctx)
	return out, stored(err)
}

func (t trail) ImportAudit(ctx context.Context, who string, in api.AuditImport) (api.AuditImported, error) {
	if who == "" {
		return api.AuditImported{}, errors.New("nobody imports")
	}
	out, err := t.trail.Import(ctx, who, in)
	return out, stored(err)
}

var _ console.Audit = trail{}
