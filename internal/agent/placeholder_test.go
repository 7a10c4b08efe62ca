package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestForgedPlaceholderIsALock: what a take-over puts in a lock's place is no lock; the
// same value that another client wrote under another key is, is judged, and nobody can
// ask to release it. The agent knows which is which when it starts again.
func TestForgedPlaceholderIsALock(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	b := newBed(t, target(srv.URL())+`
classes:
  - {class: pay, match: ["lock:pay:*"], release: approve}
`)
	const key, forged = "lock:pay:1", "lock:pay:2"
	set(t, rdb, key, token, time.Hour)
	in := ask(key)
	in.TakeOverMs = time.Hour.Milliseconds()
	r, err := b.ana.CreateRequest(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "let us look", EvidenceHash: r.EvidenceHash}); err != nil || r.State != "released" {
		t.Fatalf("%+v, %v", r, err)
	}
	rdb.Set(t.Context(), forged, rdb.Get(t.Context(), key).Val(), 0) // and no TTL
	check := func() {
		t.Helper()
		testredis.Eventually(t, within, func() bool {
			list, err := b.bo.Findings(t.Context(), apiclient.FindingsQuery{})
			return err == nil && slices.ContainsFunc(list.Findings, func(f api.ListedFinding) bool {
				return f.Rule == "ttl/none" && f.Key.Key == forged
			})
		}, "the forged placeholder is not judged")
		l, err := b.bo.Lock(t.Context(), "main", nil, forged, "en")
		if err != nil || l.TokenKind != locksteward.UnverifiedPlaceholder {
			t.Errorf("the forged placeholder is %+v, %v", l, err)
		}
		if l, err := b.bo.Lock(t.Context(), "main", nil, key, "en"); err == nil {
			t.Errorf("the placeholder of the take-over is a lock: %+v", l)
		}
		if _, err := b.ana.CreateRequest(t.Context(), ask(forged)); err == nil || !strings.Contains(err.Error(), "marked as the placeholder of a release") {
			t.Errorf("a request to release it: %v", err)
		}
	}
	check()
	b.stop()
	b.start()
	// Findings of the last run are shown before it is known which placeholders there are.
	testredis.Eventually(t, within, func() bool { return isReady(b.readiness()) }, "not ready after the restart")
	check()
}
