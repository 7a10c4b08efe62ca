//go:build !unix

package store

import (
	"errors"
	"fmt"
	"os"
)

// lockFile only creates the file: this system has no flock. Transactions keep
// the data whole; keeping a second agent away is up to the operator.
func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w; make the folder writable for this user or set store.dsn to another path", err)
	}
	return &fileLock{File: f}, nil
}

// note does nothing: nothing keeps two agents from writing it.
func (*fileLock) note(int64) {}

// lockAll fails: this system does not rename a file that is open.
func lockAll(*os.File) (release func(), err error) {
	return nil, errors.New("on this system no file takes the place of one that is open")
}
