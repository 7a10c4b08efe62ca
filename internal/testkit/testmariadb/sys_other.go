//go:build !linux

package testmariadb

import (
	"errors"
	"os"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func sendContinue(*os.Process) error { return errors.ErrUnsupported }
