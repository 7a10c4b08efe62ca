package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/store"
)

// fill writes what a backup must have: requests that are open, a trail, a message.
func fill(t *testing.T, s *store.Store) locksteward.DigestKey {
	t.Helper()
	key, err := s.DigestKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, newRequest("r-pending", "lock:a"))
	r := newRequest("r-executing", "lock:b")
	r.State = locksteward.RequestExecuting
	create(t, s, r)
	appendMany(t, s, 50)
	enqueue(t, s, message("m-1", "f1"))
	return key
}

// restored checks that what came back is what was there, and that it goes on: open
// requests can be brought to their end.
func restored(t *testing.T, s *store.Store, key locksteward.DigestKey) {
	t.Helper()
	verified(t, s, 52)
	if back, err := s.DigestKey(t.Context()); err != nil || back != key {
		t.Errorf("another digest key, %v", err)
	}
	open, err := s.ListRequests(t.Context(), []locksteward.RequestState{locksteward.RequestPending, locksteward.RequestExecuting}, "", -1)
	if err != nil || len(open) != 2 || open[0].ID != "r-executing" || open[1].ID != "r-pending" {
		t.Fatalf("open are %+v, %v", open, err)
	}
	_, err = s.UpdateRequest(t.Context(), "r-executing", func(r *locksteward.Request) ([]locksteward.Entry, error) {
		r.State = locksteward.RequestUnknown
		return []locksteward.Entry{{Action: "release.execute", Subject: r.ID}}, nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := claim(t, s, "ops", 10); len(got) != 1 || got[0].ID != "m-1" {
		t.Errorf("messages %v", ids(got))
	}
	verified(t, s, 53)
}

// A copy made while the agent writes is whole, and takes the place of the file.
func TestBackupOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dsn, copied := "sqlite:"+filepath.Join(dir, "locksteward.db"), filepath.Join(dir, "it's a backup.db")
	s := openAt(t, dsn)
	key := fill(t, s)
	n, err := store.Backup(t.Context(), dsn, copied)
	if err != nil || n != 52 {
		t.Fatalf("%d entries, %v", n, err)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	appendMany(t, s, 10) // after the backup
	if _, err := store.Backup(t.Context(), dsn, copied); err == nil || !strings.Contains(err.Error(), "name a new file") {
		t.Errorf("over an old backup: %v", err)
	}
	if _, err := store.Backup(t.Context(), "sqlite:"+dir+"/none.db", dir+"/x.db"); err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := store.Backup(t.Context(), "postgres://u@h/db", dir+"/x.db"); err == nil || !strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("of PostgreSQL: %v", err)
	}
	closeStore(t, s)

	// As docs/store.md says: the agent is stopped, log and index of the old file go,
	// the copy takes its place.
	script := `rm -f locksteward.db-wal locksteward.db-shm && cp "it's a backup.db" locksteward.db`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	restored(t, openAt(t, dsn), key)
}

// A backup of a trail that was tampered with says so, and leaves no file.
func TestBackupChecksTheTrail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dsn := "sqlite:" + filepath.Join(dir, "locksteward.db")
	s := openAt(t, dsn)
	appendMany(t, s, 5)
	if err := s.Exec(t.Context(), `UPDATE entries SET actor = 'eve' WHERE seq = 3`); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Backup(t.Context(), dsn, dir+"/x.db"); err == nil || n != 2 || !strings.Contains(err.Error(), "broken at entry 3") {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := os.Stat(dir + "/x.db"); !os.IsNotExist(err) {
		t.Errorf("the copy is there: %v", err)
	}
}

// The commands of docs/store.md for PostgreSQL.
func TestBackupOfPostgres(t *testing.T) {
	from, to := testpg.Database(t), testpg.Database(t)
	t.Parallel()
	s := openAt(t, from)
	key := fill(t, s)
	dump := filepath.Join(t.TempDir(), "locksteward.dump")
	run := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(testpg.Program(t, program), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program, err, out)
		}
	}
	run("pg_dump", "--format=custom", "--no-owner", "--file="+dump, from)
	appendMany(t, s, 10)
	run("pg_restore", "--no-owner", "--single-transaction", "--dbname="+to, dump)
	restored(t, openAt(t, to), key)
}
