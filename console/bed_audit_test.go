package console

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

func (w *world) Entries(_ context.Context, q AuditQuery) ([]locksteward.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trails = append(w.trails, q)
	var out []locksteward.Entry
	for _, e := range w.entries {
		if (q.Before == 0 || e.Seq < q.Before) && e.Seq > q.After && (q.Actor == "" || e.Actor == q.Actor) &&
			(q.Search == "" || strings.Contains(e.Actor+e.Action+e.Key+e.Reason+e.Subject, q.Search)) {
			out = append(out, e)
		}
	}
	if q.Ascending {
		slices.Reverse(out)
	}
	return out[:min(q.Limit, len(out))], w.fail
}

func (w *world) Checkpoints(_ context.Context, before int64, limit int) ([]api.Checkpoint, error) {
	return []api.Checkpoint{w.checkpoint()}[:min(limit, 1)], w.fail
}

func (w *world) checkpoint() api.Checkpoint {
	return api.Checkpoint{
		Place: api.Place{Seq: 1, Hash: "h1"}, At: time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC), KeyID: "ed25519:4f1c9a0b7d2e6835", Signature: "c2lnbmF0dXJl",
		Line: "locksteward-checkpoint-1 1 h1 2026-03-01T13:00:00Z ed25519:4f1c9a0b7d2e6835 c2lnbmF0dXJl",
	}
}

func (w *world) VerifyAudit(context.Context) (api.AuditVerified, error) {
	return api.AuditVerified{Whole: true, Entries: 1, Head: api.Place{Seq: 1, Hash: "h1"}, Checkpoints: 1, Signed: 1, DurationMs: 2}, w.fail
}

func (w *world) AuditStatus(context.Context) (api.AuditStatus, error) {
	return api.AuditStatus{
		Entries: 1, Head: api.Place{Seq: 1, Hash: "h1"}, KeyID: "ed25519:4f1c9a0b7d2e6835", PublicKey: "-----BEGIN PUBLIC KEY-----\n…",
		Checkpoint: new(w.checkpoint()), Sinks: []api.AuditSink{{Name: "siem", Kind: "syslog", Seq: 1}},
	}, w.fail
}

func (w *world) ImportAudit(_ context.Context, who string, in api.AuditImport) (api.AuditImported, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.imports = append(w.imports, in)
	w.importers = append(w.importers, who)
	return api.AuditImported{Imported: len(in.Lines)}, w.fail
}
