//go:build unix

package testpg

import (
	"errors"
	"os"
	"syscall"
)

func credential(as *account) *syscall.Credential {
	if as == nil {
		return nil
	}
	return &syscall.Credential{Uid: as.uid, Gid: as.gid}
}

func sendStop(pid int) error { return send(pid, syscall.SIGSTOP) }

func sendContinue(pid int) error { return send(pid, syscall.SIGCONT) }

func sendQuit(pid int) error { return send(pid, syscall.SIGQUIT) }

func sendKill(pid int) error { return send(pid, syscall.SIGKILL) }

func send(pid int, sig syscall.Signal) error {
	err := syscall.Kill(pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
