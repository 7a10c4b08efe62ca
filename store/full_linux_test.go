package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// smallDisk is a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED: no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// A real disk that is full: nothing accepted is lost, nothing is half written, and
// with room again all goes on.
// fault: 78
func TestRealDiskIsFull(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	s := openAt(t, "sqlite:"+filepath.Join(dir, "locksteward.db"))
	create(t, s, newRequest("r-1", "lock:a"))
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 500<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	accepted := int64(1)
	var full error
	for full == nil && accepted < 10_000 {
		entry := locksteward.Entry{Action: "fill", Reason: strings.Repeat("x", 4096)}
		if full = s.AppendEntries(t.Context(), entry); full == nil {
			accepted++
		}
	}
	if e, ok := errors.AsType[*store.Error](full); !ok || !errors.Is(full, store.ErrFull) || !strings.Contains(e.Hint, dir) {
		t.Fatalf("after %d entries: %v", accepted, full)
	}
	_, err := s.UpdateRequest(t.Context(), "r-1", func(r *locksteward.Request) ([]locksteward.Entry, error) {
		r.State = locksteward.RequestExecuting
		return []locksteward.Entry{{Action: "release.execute", Reason: strings.Repeat("x", 8192)}}, nil
	})
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("an intent was written: %v", err)
	}
	if r, err := s.GetRequest(t.Context(), "r-1"); err != nil || r.State != locksteward.RequestPending {
		t.Errorf("request is %s, %v", r.State, err)
	}
	verified(t, s, accepted)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "after"}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	verified(t, s, accepted+1)
}

// A file system that takes no writes says so at the start.
// fault: 78
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	dsn := "sqlite:" + filepath.Join(dir, "locksteward.db")
	closeStore(t, openAt(t, dsn))
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), dsn)
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "make the folder writable") {
		t.Errorf("got %v", err)
	}
	if _, err := store.Open(t.Context(), "sqlite:"+dir+"/new/locksteward.db"); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("got %v", err)
	}
}
