//go:build !linux

package testmariadb

import (
	"errors"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func sendStop(int) error { return errors.ErrUnsupported }

func sendContinue(int) error { return errors.ErrUnsupported }
