//go:build !unix

package store

import (
	"fmt"
	"os"
)

// lockFile only creates the file: this system has no flock, and a second agent is not
// refused. Transactions keep the data consistent.
func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w; make the folder writable for this user or set store.dsn to another path", err)
	}
	return &fileLock{File: f}, nil
}

// record does nothing: two agents could write the file.
func (*fileLock) record(int64) {}

// copyOwner does nothing: this system has no owner that a program may set.
func copyOwner(string, os.FileInfo) error { return nil }
