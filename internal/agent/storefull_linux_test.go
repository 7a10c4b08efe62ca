package agent_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// fault: 78
func TestDiskThatIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("SKIPPED: no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	srv, e := testredis.Start(t), newEar(t)
	dsn := "sqlite:" + filepath.Join(dir, "store.db")
	b := newBedOn(t, target(srv.URL())+orders+receivers("ops", e.url), dsn)
	ballast := filepath.Join(dir, "ballast")
	storeFault(t, b, srv, e, func() { fill(t, ballast) }, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}, "no space left")
	stillKnown(t, dsn)
}

// fill writes a file until there is no room for one more byte.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}
