//go:build !unix

package testpg

import (
	"errors"
	"os"
	"syscall"
)

func childAttr(*account) *syscall.SysProcAttr { return nil }

func sendStop(int) error { return errors.ErrUnsupported }

func sendContinue(int) error { return errors.ErrUnsupported }

func sendQuit(int) error { return errors.ErrUnsupported }

func sendKill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return os.ErrProcessDone
	}
	return p.Kill()
}
