//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// lockPatience is how long a lock is waited for that may be about to go.
const lockPatience = 500 * time.Millisecond

// lockFile takes an advisory lock on path, which the kernel drops with the
// process however it ends. The file stays: removing it would let two agents lock
// two files of one name. It holds the agent's process id, for the error message.
func lockFile(path string) (io.Closer, error) {
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
		holder, rerr := io.ReadAll(io.LimitReader(f, 32))
		who := "another agent"
		if pid := strings.TrimSpace(string(holder)); rerr == nil && pid != "" {
			who = "another agent (process " + pid + ")"
		}
		return nil, fmt.Errorf("open store: %s uses %q already; stop it first or give this one another store.dsn",
			who, strings.TrimSuffix(path, ".lock"))
	}
	// Only a convenience for the message above: failing to write it is no reason
	// not to start.
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}
