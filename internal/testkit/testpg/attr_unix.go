//go:build unix && !linux

package testpg

import "syscall"

func childAttr(as *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: credential(as)}
}
