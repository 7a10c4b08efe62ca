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

// lockPatience is how long a lock is waited for that may be about to go.
const lockPatience = 500 * time.Millisecond

// lockFile takes an advisory lock on path, which the kernel drops with the
// process however it ends. The file stays: removing it would let two agents lock
// two files of one name. It holds the agent's process id, for the error message, and
// a mark, see [fileLock.note].
func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w; make the folder writable for this user or set store.dsn to another path", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	// A process that an agent which just ended was starting has the file open until
	// it runs its own program: a moment.
	for end := time.Now().Add(lockPatience); errors.Is(err, syscall.EWOULDBLOCK) && time.Now().Before(end); {
		<-time.After(lockPatience / 25)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock store %q: %w; use a local file system", path, err)
		}
		who := "another agent"
		if pid, _ := content(f); pid != "" {
			who = "another agent (process " + pid + ")"
		}
		return nil, fmt.Errorf("open store: %s uses %q already; stop it first or give this one another store.dsn",
			who, strings.TrimSuffix(path, ".lock"))
	}
	_, mark := content(f)
	l := &fileLock{File: f, mark: mark}
	l.note(mark)
	return l, nil
}

// note writes our process id, and how many entries the audit trail has. Both are
// conveniences: failing to write them is no reason not to go on.
func (l *fileLock) note(mark int64) {
	// All at once over what is there: a process that is killed leaves one or the other.
	text := fmt.Appendf(nil, "%d\n%019d\n", os.Getpid(), mark)
	if _, err := l.WriteAt(text, 0); err == nil {
		_ = l.Truncate(int64(len(text)))
	}
}

// content reads what note wrote.
func content(f *os.File) (pid string, mark int64) {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 64))
	if err != nil {
		return "", 0
	}
	pid, rest, _ := strings.Cut(string(raw), "\n")
	if mark, err = strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err != nil {
		mark = 0 // of an older program, or torn
	}
	return strings.TrimSpace(pid), mark
}

// The bytes of a file on which SQLite has its locks: each program that uses it has one on
// some of them (https://www.sqlite.org/fileformat.html#the_lock_byte_page).
const locksAt, locksLen = 1 << 30, 512

// lockAll takes all locks that SQLite could have on a file; it fails if another process
// has one. This process must have none: they would end with it.
func lockAll(f *os.File) (release func(), err error) {
	all := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: locksAt, Len: locksLen}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &all); err != nil {
		return nil, fmt.Errorf("another program has the store open: %w", err)
	}
	return func() {
		all.Type = syscall.F_UNLCK
		_ = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &all) // else they end with f
	}, nil
}
