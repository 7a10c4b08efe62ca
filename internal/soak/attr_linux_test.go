package soak_test

import "syscall"

// childAttr ends an agent with the thread that started it, and keeps Ctrl-C from it.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
