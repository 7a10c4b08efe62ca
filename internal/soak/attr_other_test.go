//go:build !linux

package soak_test

import "syscall"

// childAttr would end an agent with the test that started it.
func childAttr() *syscall.SysProcAttr { return nil }
