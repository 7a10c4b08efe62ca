package alertchaos_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// disk is where a store is.
type disk struct {
	dir   string
	small bool // it can be filled
}

// newDisk is a file system of its own that can be filled, where that is wanted and
// allowed.
func newDisk(t *testing.T, small bool) *disk {
	t.Helper()
	d := &disk{dir: t.TempDir()}
	if !small {
		return d
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Logf("THE DISK DOES NOT FILL: no file system can be mounted here: %v", err)
		return d
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	d.small = true
	return d
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill writes a file until there is no room for one more byte.
func (d *disk) fill(t *testing.T) {
	t.Helper()
	f, err := os.Create(d.ballast())
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

// free makes room again.
func (d *disk) free(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		t.Fatal(err)
	}
}
