//go:build unix

package execlock

import (
	"errors"
	"syscall"
	"time"
)

// pollInterval is how often a group that is being stopped is looked at.
const pollInterval = 20 * time.Millisecond

// stopper ends a process group.
type stopper struct{ done chan struct{} }

// stopGroup begins to stop a group: how says with which signal, and what is left
// after grace is killed. A member that was stopped (SIGSTOP) is continued, or it
// would not see SIGTERM.
func stopGroup(group int, how Stop, grace time.Duration) *stopper {
	s := &stopper{done: make(chan struct{})}
	if how == StopKill || grace <= 0 {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		close(s.done)
		return s
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	_ = syscall.Kill(-group, syscall.SIGCONT)
	go func() {
		defer close(s.done)
		kill := time.NewTimer(grace)
		defer kill.Stop()
		look := time.NewTicker(pollInterval)
		defer look.Stop()
		for {
			select {
			case <-kill.C:
				_ = syscall.Kill(-group, syscall.SIGKILL)
				return
			case <-look.C:
				if gone(group) {
					return
				}
			}
		}
	}()
	return s
}

// finish waits until nothing of the group is left, or was killed.
func (s *stopper) finish() { <-s.done }

// gone says that a group has no member any more. A dead one that nobody has
// waited for counts as there.
func gone(group int) bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
