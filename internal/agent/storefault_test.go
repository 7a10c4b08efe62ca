package agent_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// storeFault is what an agent must stand whatever its store's fault is: a request
// is pending, the store fails, a new lock without TTL appears, of which people are
// reported all the same, and once.
func storeFault(t *testing.T, b *bed, srv *testredis.Server, e *ear, fail, mend func(), says string) {
	t.Helper()
	t.Cleanup(func() {
		for _, l := range b.logs.All() {
			if t.Failed() && l.Level > zap.DebugLevel {
				t.Log(l.Time.Format(time.TimeOnly+".000"), l.Message, l.ContextMap())
			}
		}
	})
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} 1`)
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "stuck"})
	if err != nil {
		t.Fatal(err)
	}
	e.await(2) // of the finding and of the request
	b.awaitDrained("ops", 2)
	const allSaved = `locksteward_findings_unsaved{target="main"} 0` + "\n"
	b.awaitMetric(allSaved)
	fail()
	_, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != api.CodeUnavailable || !strings.Contains(p.Detail, says) {
		t.Errorf("approve: %v", err)
	}
	if n := rdb.Exists(t.Context(), "lock:order:1").Val(); n != 1 {
		t.Error("released without an intent that was written")
	}
	set(t, rdb, "lock:order:2", token, 0)
	b.awaitMetric(`locksteward_findings{class="orders",risk="deadlock",rule="ttl/none",severity="critical",target="main"} 2`)
	testredis.Eventually(t, within, func() bool {
		got := b.metrics()
		return strings.Contains(got, `locksteward_findings_unsaved{target="main"} `) && !strings.Contains(got, allSaved)
	}, "the metrics do not say that findings are not saved")
	kind := map[string]string{"no space left": "full", "another program keeps the file locked": "locked", "does not answer": "away"}[says]
	if got := b.metrics(); !strings.Contains(got, `locksteward_store_errors_total{kind="`+kind+`"} `) || strings.Contains(got, `locksteward_store_errors_total{kind="`+kind+`"} 0`) {
		t.Errorf("the metrics count no error of the kind %q", kind)
	}
	if got := get("http://" + b.agent.MetricsAddr().String() + "/-/healthy"); !strings.Contains(got, "ok") {
		t.Errorf("healthy: %q", got)
	}
	if list, err := b.ana.Locks(t.Context(), apiclient.LocksQuery{}); err != nil || list.Total != 2 {
		t.Errorf("locks: %+v, %v", list, err)
	}
	if got := e.await(3); got[2].finding() != "lock:order:2 firing" {
		t.Errorf("reported %s", got[2].finding())
	}
	if got := b.metrics(); !strings.Contains(got, `locksteward_target_up{target="main"} 1`) || strings.Contains(got, allSaved) {
		t.Errorf("before the store is mended the metrics are %d bytes; they have all saved: %t", len(got), strings.Contains(got, allSaved))
	}
	mend()
	testredis.Eventually(t, within, func() bool {
		return strings.Contains(logText(b), "findings are saved again")
	}, "findings are not written when the store works again")
	b.awaitMetric(allSaved)
	testredis.Eventually(t, within, func() bool {
		r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash})
		return err == nil
	}, "nothing can be approved when the store works again")
	if r.State != string(locksteward.RequestReleased) {
		t.Errorf("request is %s: %s", r.State, r.Outcome)
	}
	b.stop()
	times := 0
	for _, h := range e.of("") {
		if h.finding() == "lock:order:2 firing" {
			times++
		}
	}
	if times != 1 {
		t.Errorf("reported %d times", times)
	}
}

// stillKnown opens the store after its agent and looks for the finding on the lock
// that appeared while it failed, and at the trail.
func stillKnown(t *testing.T, dsn string) {
	t.Helper()
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	findings, err := st.LoadFindings(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range findings {
		found = found || f.Key == "lock:order:2" && f.Status == locksteward.StatusFiring
	}
	if !found {
		t.Errorf("the finding of that time is lost: %+v", findings)
	}
	if _, err := st.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// backup copies the bed's own store, and returns where to.
func (b *bed) backup() string {
	b.t.Helper()
	to := filepath.Join(b.dir, "backup.db")
	if _, err := store.Backup(b.t.Context(), b.dsn, to); err != nil {
		b.t.Fatal(err)
	}
	return to
}

// restore puts a copy in the place of the bed's own store while no agent runs.
func (b *bed) restore(copied string) {
	b.t.Helper()
	live := filepath.Join(b.dir, "store.db")
	if err := errors.Join(os.RemoveAll(live+"-wal"), os.RemoveAll(live+"-shm"), os.Rename(copied, live)); err != nil {
		b.t.Fatal(err)
	}
}

// verify checks the trail in the store while no agent runs.
func (b *bed) verify() {
	b.t.Helper()
	st, err := store.Open(b.t.Context(), b.dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Verify(b.t.Context()); err != nil {
		b.t.Error(err)
	}
}

func TestStoreThatIsLocked(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	path := filepath.Join(b.dir, "store.db")
	shell, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	shell.SetMaxOpenConns(1)
	must := func(statement string) {
		if _, err := shell.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	storeFault(t, b, srv, e, func() { must(`BEGIN EXCLUSIVE`) }, func() { must(`ROLLBACK`) }, "another program keeps the file locked")
	stillKnown(t, "sqlite:"+path)
}

func TestDatabaseThatGoesAway(t *testing.T) {
	t.Parallel()
	server := testpg.Start(t)
	srv, e := testredis.Start(t), newEar(t)
	b := newBedOn(t, target(srv.URL())+orders+receivers("ops", e.url), server.DSN())
	storeFault(t, b, srv, e, server.Kill, server.Restart, "does not answer")
	stillKnown(t, server.DSN())
}

// A backup that was made between the intent of a release and its outcome: after it
// is restored the request gets its true outcome, and nothing is released again.
func TestBackupWhileARequestIsExecuted(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	set(t, rdb, "lock:order:1", token, 0)
	b := newBed(t, target(srv.URL())+orders)
	b.awaitMetric(`locksteward_locks{class="orders",library="token",target="main"} 1`)
	r, err := b.ana.CreateRequest(t.Context(), api.CreateRequest{Target: "main", Key: api.NewKey("lock:order:1"), Reason: "stuck"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = b.bo.Approve(t.Context(), r.ID, api.Decide{Reason: "checked", EvidenceHash: r.EvidenceHash}); err != nil || r.State != "released" {
		t.Fatalf("%+v, %v", r, err)
	}
	copied := b.backup()
	b.stop()
	// The copy as it is when it is made a moment earlier: without the outcome.
	back, err := sql.Open("sqlite", "file:"+copied)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`DELETE FROM entries WHERE seq > (SELECT MIN(seq) FROM entries WHERE action = 'release.execute' AND outcome = 'intent')`,
		`UPDATE entries_head SET (seq, hash) = (SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1)`,
		`UPDATE requests SET state = 'executing', outcome = '', finished_at = 0`,
	} {
		if _, err := back.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := back.Close(); err != nil {
		t.Fatal(err)
	}
	b.restore(copied)
	const other = "6f2b8c1e-9d1a-4b6e-8f0a-1c2d3e4f5a6b"
	set(t, rdb, "lock:order:1", other, 0) // somebody works under it by now
	b.start()
	testredis.Eventually(t, within, func() bool {
		got, err := b.ana.Request(t.Context(), r.ID)
		return err == nil && got.State == "released"
	}, "the request does not get its true outcome")
	if got := rdb.Get(t.Context(), "lock:order:1").Val(); got != other {
		t.Error("released twice")
	}
	b.stop()
	b.verify()
}
