//go:build !linux

package redisproc

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
