package redisproc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendStop stops a child and returns when all its threads stand: the signal by
// itself returns at once, and what runs on another processor may still send.
func sendStop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The kernel reports the stop when the last thread stands. WEXITED is left
	// out: the exit belongs to who waits for the process.
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-tick.C {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait until it stands: %w", err)
		case info.Signo != 0:
			return nil
		}
	}
	return errors.New("it got SIGSTOP and does not stand after 10s")
}

// Freeze stops a child of this process (SIGSTOP) and returns when all its
// threads stand; SIGCONT ends that. Elsewhere than on Linux it returns at once.
func Freeze(p *os.Process) error { return sendStop(p) }
