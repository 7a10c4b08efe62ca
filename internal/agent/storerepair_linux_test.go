//go:build amd64 || arm64

package agent_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/internal/testkit/testsyscall"
	"github.com/locksteward/locksteward/store"
)

// After a failed fsync the agent releases nothing and writes nothing, watches and alerts
// on, and says in log, metrics and readiness what to do. It does not start again before the
// store was repaired.
// fault: 78
func TestStoreThatNeedsRepair(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	set(t, rdb, "lock:order:1", token, 0)
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:1 firing") == 1 }, "the finding is not sent")
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "stuck"})
	if err != nil {
		t.Fatal(err)
	}
	b.awaitDrained("ops", 2) // of the finding and of the request
	b.awaitMetric("locksteward_store_needs_repair 0\n")

	// The commit follows on the thread that runs this callback.
	var once sync.Once
	var filter error
	b.agent.BeforeComposing(func(store.Written) {
		once.Do(func() { filter = testsyscall.FailInThread(testsyscall.Fsync...) })
	})
	for range 2 {
		_, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
		if filter != nil {
			t.Skipf("SKIPPED: no system call can be made to fail here: %v", filter)
		}
		if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != api.CodeUnavailable || !strings.Contains(p.Detail, "locksteward store backup --in-place") {
			t.Fatalf("approve: %v", err)
		}
	}
	if rdb.Exists(t.Context(), "lock:order:1").Val() != 1 {
		t.Error("released without a written intent")
	}
	b.awaitMetric("locksteward_store_needs_repair 1\n")
	b.awaitMetric(`locksteward_store_errors_total{kind="unsynced"} 1` + "\n")
	if got := b.readiness(); !strings.Contains(got, "store: needs repair") || !strings.Contains(got, "locksteward store backup --in-place") {
		t.Errorf("ready: %q", got)
	}
	testredis.Eventually(t, within, func() bool { return b.logs.FilterMessageSnippet("the store needs repair").Len() == 1 }, "the log does not say it once")
	set(t, rdb, "lock:order:2", token, 0)
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:2 firing") == 1 }, "later findings are not sent")
	b.stop()

	b.refuses("the disk did not confirm a write", filepath.Join(b.dir, "store.db.needs-repair"), "locksteward store backup --in-place --store "+b.dsn)
	if _, err := store.Repair(t.Context(), b.dsn); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.awaitMetric("locksteward_store_needs_repair 0\n")
	got, err := b.ana.Request(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the request is %s after the repair", got.State)
	b.stop()
	b.verify()
}
