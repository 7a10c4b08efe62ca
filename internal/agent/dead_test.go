package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestProposedByExpression: dead_when takes an expression; it proposes once per
// hold, never for a lock whose constant token hides turnover, and lets the
// requester approve alone as a rule would.
func TestProposedByExpression(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	set(t, rdb, "lock:order:2", "1", 0)
	set(t, rdb, "lock:order:3", token, time.Hour)
	const dead = "!lock.has_ttl && lock.key.startsWith('lock:order:')"
	b := newBed(t, target(srv.URL())+strings.Replace(orders, "release: approve",
		`release: approve, dead_when: ["`+dead+`", "lock.fence > 0"]`, 1))
	testredis.Eventually(t, within, func() bool { return len(b.requests()) == 1 }, "nothing is proposed")
	r := b.requests()[0]
	if r.Requester != "agent" || r.State != string(locksteward.RequestPending) || r.Evidence.Key.Key != "lock:order:1" ||
		!slices.Contains(r.Evidence.Findings, dead) {
		t.Errorf("request %+v", r)
	}
	if _, err := b.bo.Deny(t.Context(), r.ID, api.Decide{Reason: "it is alive"}); err != nil {
		t.Fatal(err)
	}
	b.awaitSweeps(3)
	if n := len(b.requests()); n != 1 {
		t.Errorf("%d requests after a denial, want no new one", n)
	}
}
