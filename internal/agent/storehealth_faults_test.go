package agent_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// spoil overwrites a page of the bed's own store while no agent runs: the first one of a
// table, "" for that of the file.
func (b *bed) spoil(table string) {
	b.t.Helper()
	path := filepath.Join(b.dir, "store.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		b.t.Fatal(err)
	}
	page, size := int64(1), int64(4096)
	if table != "" {
		if err := db.QueryRowContext(b.t.Context(), `SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = ?`, table).Scan(&page, &size); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (page-1)*size); err != nil {
		b.t.Fatal(err)
	}
}

// A file that is damaged keeps the agent from its work, with the way out, unless the
// configuration says to set it aside: then it lies beside an empty store, which says so
// in its first entry, the log, the metrics and the readiness until somebody moved it
// away. What fires is told again, and nothing is released.
// fault: 79
func TestDamagedStoreIsSetAside(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	rdb := srv.Client(t)
	text := target(srv.URL()) + orders + receivers("ops", e.url)
	b := newBed(t, text)
	set(t, rdb, "lock:order:1", token, 0)
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:1 firing") == 1 }, "it is not told")
	const none, one = "locksteward_store_set_aside 0\n", "locksteward_store_set_aside 1\n"
	b.awaitMetric(none)
	b.stop()
	b.spoil("")
	cfg, err := config.Load(b.file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.New(t.Context(), zap.NewNop(), cfg, agent.Options{}); err == nil ||
		!strings.Contains(err.Error(), "restore the last backup") || !strings.Contains(err.Error(), "audit verify") || !strings.Contains(err.Error(), "store.on_damage: set_aside") {
		t.Fatalf("it began on a damaged file, or does not say what to do: %v", err)
	}

	b.keys = ", on_damage: set_aside"
	b.write(text)
	b.start()
	b.awaitMetric(one)
	b.awaitMetric("locksteward_store_damaged 0\n")
	left := store.Config{DSN: b.dsn}.Damaged()
	if len(left) != 1 || b.logs.FilterMessageSnippet("its file is set aside").Len() != 1 {
		t.Fatalf("set aside is %q", left)
	}
	testredis.Eventually(t, within, func() bool { return strings.Contains(b.readiness(), filepath.Base(left[0])) }, "it is not to be read where readiness is")
	list, err := b.bo.AuditEntries(t.Context(), apiclient.AuditQuery{Ascending: true, Limit: 1})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].Action != "store.set_aside" || !strings.Contains(list.Entries[0].Reason, left[0]) {
		t.Errorf("the trail begins with %+v, %v", list, err)
	}
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:1 firing") == 2 }, "what the file knew is not told again")
	if rdb.Exists(t.Context(), "lock:order:1").Val() != 1 {
		t.Error("a lock was released")
	}
	if err := os.Rename(left[0], filepath.Join(t.TempDir(), "looked at")); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(none)
	if got := b.readiness(); strings.Contains(got, "set aside") {
		t.Errorf("moved away, ready says %q", got)
	}
	b.stop()
	b.verify()
}

// Damage where no call has been yet is found by the agent itself: metric, log and
// readiness say so, and it goes on with what it can read.
// fault: 79
func TestDamageInTheMiddleIsTold(t *testing.T) {
	t.Parallel()
	srv, e := testredis.Start(t), newEar(t)
	b := newBed(t, target(srv.URL())+orders+receivers("ops", e.url))
	b.awaitMetric("locksteward_store_damaged 0\n")
	b.stop()
	b.spoil("imported")
	b.start()
	b.awaitMetric("locksteward_store_damaged 1\n")
	b.awaitMetric(`locksteward_store_errors_total{kind="damaged"} 1` + "\n")
	testredis.Eventually(t, within, func() bool { return b.logs.FilterMessageSnippet("the store is damaged").Len() == 1 }, "the log does not say so")
	testredis.Eventually(t, within, func() bool { return strings.Contains(b.readiness(), "store: damaged: ") }, "it is not to be read where readiness is")
	set(t, srv.Client(t), "lock:order:1", token, 0)
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:1 firing") == 1 }, "nothing is told any more")
	b.stop()
}
