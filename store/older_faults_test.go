package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/store"
)

// A file that is put back to what it was says by how much, until it was closed in
// order.
func TestFileThatIsOlder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "locksteward.db"), filepath.Join(dir, "backup.db")
	dsn := "sqlite:" + path
	behind := func(want int64) {
		t.Helper()
		s := openAt(t, dsn)
		got, older, err := s.Older(t.Context())
		if err != nil || got.Missing != want || older != (want > 0) {
			t.Errorf("older %t by %+v, %v, want %d", older, got, err, want)
		}
		closeStore(t, s)
	}
	s := openAt(t, dsn)
	appendMany(t, s, 3)
	closeStore(t, s)
	if _, err := store.Backup(t.Context(), dsn, copied); err != nil {
		t.Fatal(err)
	}
	behind(0)
	s = openAt(t, dsn)
	appendMany(t, s, 4)
	closeStore(t, s)
	behind(0)
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	behind(4)
	behind(0)
	// Of a file that was lost altogether too.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	behind(3)
	// And what an older program, or a torn write, left there is nothing.
	for _, text := range []string{"", "4711\n", "4711\nxyz\n", "4711\n99", "\x00\xff"} {
		if err := os.WriteFile(path+".lock", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openAt(t, dsn)
		if got, _, err := s.Older(t.Context()); err != nil || got.Missing != 0 && text != "4711\n99" {
			t.Errorf("%q: older by %+v, %v", text, got, err)
		}
		closeStore(t, s)
	}
}

// A copy that was taken while the file was written, and put back after its writer was
// killed, says by how much it is older: to each who opens it, until one has closed it.
func TestFileThatIsOlderAfterAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "locksteward.db"), filepath.Join(dir, "backup.db")
	s := openAt(t, "sqlite:"+path)
	appendMany(t, s, 3)
	if _, err := store.Backup(t.Context(), "sqlite:"+path, copied); err != nil {
		t.Fatal(err)
	}
	appendMany(t, s, 4)
	// What a kill leaves: the mark as it is now, whatever the end of this process does.
	mark, err := os.ReadFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	behind := func(want int64) *store.Store {
		t.Helper()
		s := openAt(t, "sqlite:"+path)
		if got, older, err := s.Older(t.Context()); err != nil || got.Missing != want || older != (want > 0) {
			t.Errorf("older %t by %+v, %v, want %d", older, got, err, want)
		}
		return s
	}
	for _, put := range []func() error{
		func() error { return os.WriteFile(path+".lock", mark, 0o600) },
		func() error { return os.Rename(copied, path) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
	}
	s = behind(4)
	appendMany(t, s, 1)
	if mark, err = os.ReadFile(path + ".lock"); err != nil { // killed again
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := os.WriteFile(path+".lock", mark, 0o600); err != nil {
		t.Fatal(err)
	}
	closeStore(t, behind(3))
	closeStore(t, behind(0))
}

// A database that was restored from a dump is another one, which its first reader is
// reported, and each that had it open; one that was put back in its place is informed to those.
func TestDatabaseThatIsOlder(t *testing.T) {
	one, two := testpg.Database(t), testpg.Database(t)
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump")
	run := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(testpg.Program(t, program), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program, err, out)
		}
	}
	older := func(s *store.Store, want store.Older) {
		t.Helper()
		got, is, err := s.Older(t.Context())
		if err != nil || got != want || is != (want != store.Older{}) {
			t.Errorf("older %t by %+v, %v, want %+v", is, got, err, want)
		}
	}
	first, other := openAt(t, one), openAt(t, one)
	defer closeStore(t, first)
	defer closeStore(t, other)
	older(first, store.Older{})
	older(other, store.Older{})
	appendMany(t, first, 3)
	run("pg_dump", "--format=custom", "--no-owner", "--file="+dump, one)
	appendMany(t, first, 4)
	older(first, store.Older{})
	older(other, store.Older{})

	// Elsewhere, for anyone who comes first.
	run("pg_restore", "--no-owner", "--single-transaction", "--dbname="+two, dump)
	for _, want := range []store.Older{{Elsewhere: true}, {}} {
		s := openAt(t, two)
		older(s, want)
		older(s, store.Older{})
		closeStore(t, s)
	}
	// In its place, while it is in use.
	run("pg_restore", "--no-owner", "--clean", "--if-exists", "--single-transaction", "--dbname="+one, dump)
	older(first, store.Older{Missing: 4, Elsewhere: true})
	older(other, store.Older{Elsewhere: true})
	older(first, store.Older{})
	older(other, store.Older{})
	appendMany(t, first, 2)
	older(first, store.Older{})
}
