package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/locksteward/locksteward/store"
)

// A file that is put back to what it was says by how much, until it was closed in
// order; what happened before a kill is not known, and nothing is said.
func TestFileThatIsOlder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "locksteward.db"), filepath.Join(dir, "backup.db")
	dsn := "sqlite:" + path
	behind := func(want int64) {
		t.Helper()
		s := openAt(t, dsn)
		if got := s.Behind(); got != want {
			t.Errorf("behind by %d, want %d", got, want)
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
		if got := s.Behind(); got != 0 && text != "4711\n99" {
			t.Errorf("%q: behind by %d", text, got)
		}
		closeStore(t, s)
	}
}
