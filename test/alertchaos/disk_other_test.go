//go:build !linux

package alertchaos_test

import "testing"

// disk is where a store is. It cannot be filled here.
type disk struct {
	dir   string
	small bool
}

func newDisk(t *testing.T, small bool) *disk {
	t.Helper()
	if small {
		t.Log("THE DISK DOES NOT FILL: no file system is mounted on this system")
	}
	return &disk{dir: t.TempDir()}
}

func (*disk) fill(*testing.T) {}
func (*disk) free(*testing.T) {}
