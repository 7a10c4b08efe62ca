package console

import (
	"errors"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
)

func (b *fixture) client(user string) *apiclient.Client {
	b.t.Helper()
	c, err := apiclient.New(b.url, locksteward.Secret(b.tokens[user]), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// The client of the command line and the console speak one language.
func TestClientAgainstConsole(t *testing.T) {
	t.Parallel()
	b := setup(t, "all", "viewer")
	b.world.locks = append(b.world.locks, aLock(hostile, time.Minute))
	c, ctx := b.client("all"), t.Context()
	if l, err := c.Locks(ctx, apiclient.LocksQuery{Target: "orders", Class: "orders", State: "firing", Sort: "age", Limit: 7}); err != nil || l.Total != 1 {
		t.Errorf("locks: %+v, %v", l, err)
	}
	l, err := c.Lock(ctx, "orders", nil, hostile, "zh")
	if back, _ := l.Key.Bytes(); err != nil || back != hostile {
		t.Errorf("lock: %+v, %v", l, err)
	}
	if f, err := c.Findings(ctx, apiclient.FindingsQuery{Severity: "critical", Status: "firing", Lang: "zh", Limit: 7}); err != nil || f.Total != 1 {
		t.Errorf("findings: %+v, %v", f, err)
	}
	if x, err := c.Targets(ctx); err != nil || len(x.Targets) != 1 {
		t.Errorf("targets: %+v, %v", x, err)
	}
	if x, err := c.Classes(ctx); err != nil || len(x.Classes) != 1 {
		t.Errorf("classes: %+v, %v", x, err)
	}
	if x, err := c.Requests(ctx, apiclient.RequestsQuery{State: "open", Target: "orders", Limit: 7}); err != nil || len(x.Requests) != 1 {
		t.Errorf("requests: %+v, %v", x, err)
	}
	if x, err := c.Request(ctx, "r1"); err != nil || x.ID != "r1" {
		t.Errorf("request: %+v, %v", x, err)
	}
	if x, err := c.CreateRequest(ctx, api.CreateRequest{Target: "orders", Key: api.NewKey(hostile), Reason: "stuck"}); err != nil || b.world.inputs[0].Key != hostile {
		t.Errorf("create: %+v, %v", x, err)
	}
	if x, err := c.Approve(ctx, "r1", api.Decide{Reason: "seen", EvidenceHash: "sha256:e1"}); err != nil || x.State != "released" {
		t.Errorf("approve: %+v, %v", x, err)
	}
	if x, err := c.Deny(ctx, "r1", api.Decide{Reason: "no"}); err != nil || x.State != "denied" {
		t.Errorf("deny: %+v, %v", x, err)
	}
	if x, err := c.Audit(ctx, 5); err != nil || len(x.Entries) != 1 {
		t.Errorf("audit: %+v, %v", x, err)
	}
	if err := c.Reload(ctx); err != nil || b.world.reloads != 1 {
		t.Errorf("reload: %v", err)
	}
	if err := b.client("viewer").Reload(ctx); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("a viewer reloads: %v", err)
	}
	if _, err := b.client("").Targets(ctx); !errors.Is(err, locksteward.ErrRefused) {
		t.Errorf("a stranger reads: %v", err)
	}
	if _, err := c.Request(ctx, "zzz"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	b.world.fail = locksteward.ErrConflict
	if _, err := c.Approve(ctx, "r1", api.Decide{}); !errors.Is(err, locksteward.ErrConflict) {
		t.Errorf("got %v", err)
	}
}
