//go:build !unix

package testetcd

import (
	"errors"
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func signalStop(*os.Process) error { return errors.ErrUnsupported }

func signalContinue(*os.Process) error { return errors.ErrUnsupported }
