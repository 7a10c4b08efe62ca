//go:build !linux

package testam

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
