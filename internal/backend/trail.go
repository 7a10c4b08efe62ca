package backend

import (
	"context"
	"errors"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/store"
)

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
