//go:build !unix

package testetcd

import (
	"errors"
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func signalContinue(*os.Process) error { return errors.ErrUnsupported }
