//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockTimeout is how long a lock is waited for that is about to be released.
const lockTimeout = 500 * time.Millisecond

// lockFile takes an advisory lock on path, which the kernel releases when the process
// ends. The file is never removed: two agents could then lock two files of one name. It
// holds what [fileLock.record] wrote.
func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w; make the folder writable for this user or set store.dsn to another path", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	// A child process of an agent that just ended holds the lock until its exec.
	for end := time.Now().Add(lockTimeout); errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end); {
		<-time.After(lockTimeout / 25)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock store %q: %w; use a local file system", path, err)
		}
		who := "another agent"
		if pid, _ := parseLockFile(f); pid != "" {
			who = "another agent (process " + pid + ")"
		}
		return nil, fmt.Errorf("open store: %s uses %q already; stop it first or give this one another store.dsn",
			who, strings.TrimSuffix(path, ".lock"))
	}
	_, trail := parseLockFile(f)
	l := &fileLock{File: f, trail: trail}
	l.record(trail)
	return l, nil
}

// record writes the process id, for the error message of a second agent, and the length
// of the audit trail. A failure is ignored: the store works without them.
func (l *fileLock) record(trail int64) {
	// One write over the old text: a process that is killed leaves one or the other.
	text := fmt.Appendf(nil, "%d\n%019d\n", os.Getpid(), trail)
	if _, err := l.WriteAt(text, 0); err == nil {
		_ = l.Truncate(int64(len(text)))
	}
}

// parseLockFile reads what record wrote.
func parseLockFile(f *os.File) (pid string, trail int64) {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 64))
	if err != nil {
		return "", 0
	}
	pid, rest, _ := strings.Cut(string(raw), "\n")
	if trail, err = strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err != nil {
		trail = 0 // torn
	}
	return strings.TrimSpace(pid), trail
}

// copyOwner gives path the owner of the file that info describes.
func copyOwner(path string, info os.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}
