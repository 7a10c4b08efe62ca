package audit_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/locksteward/locksteward/internal/audit"
)

// A disk that is full gives an error and no half file, and the file that was there
// stays.
func TestExportToAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("SKIPPED: no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := openStore(t)
	appendMany(t, s, 0, 50)
	file := filepath.Join(dir, "trail.jsonl")
	if _, err := audit.ExportFile(t.Context(), s, file, true, audit.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	appendMany(t, s, 50, 2000)
	for _, name := range []string{file, filepath.Join(dir, "other.jsonl")} {
		if _, err := audit.ExportFile(t.Context(), s, name, true, audit.ExportOptions{}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := os.ReadFile(file)
	list, lerr := os.ReadDir(dir)
	if err != nil || lerr != nil || string(after) != string(before) || len(list) != 1 {
		t.Errorf("%d bytes, were %d; %v, %v, %v", len(after), len(before), list, err, lerr)
	}
}
