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

// A damaged file keeps the agent from starting, and the error says what to do. With the
// last backup in its place the agent starts, and nothing is released.
// fault: 79
func TestDamagedStoreIsRefused(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	b := newBed(t, target(srv.URL())+orders)
	set(t, rdb, "lock:order:1", token, 0)
	b.awaitMetric("locksteward_store_damaged 0\n")
	path := filepath.Join(b.dir, "store.db")
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := store.Backup(t.Context(), b.dsn, backup); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.spoil("")
	b.refuses("restore the last backup", "audit verify", "without a backup the agent creates an empty store")
	if err := os.Rename(backup, path); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.awaitMetric("locksteward_store_damaged 0\n")
	if rdb.Exists(t.Context(), "lock:order:1").Val() != 1 {
		t.Error("a lock was released")
	}
	b.stop()
	b.verify()
}

// refuses starts an agent, which must fail with an error that contains all of want.
func (b *bed) refuses(want ...string) {
	b.t.Helper()
	cfg, err := config.Load(b.file)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = agent.New(b.t.Context(), zap.NewNop(), cfg, agent.Options{})
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			b.t.Errorf("the agent's error %v lacks %q", err, w)
		}
	}
}

// Damage where no call has been yet is found by the agent itself: metric, log and
// readiness say so, and it goes on with what it can read.
// fault: 79
func TestDamageInTheMiddleIsReported(t *testing.T) {
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
	testredis.Eventually(t, within, func() bool { return e.times("lock:order:1 firing") == 1 }, "nothing is reported any more")
	b.stop()
}
