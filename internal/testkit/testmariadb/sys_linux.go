package testmariadb

import "syscall"

// childAttr makes the kernel kill the server when the thread that started it ends, and keeps a Ctrl-C
// at the terminal from reaching it before us.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func sendStop(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func sendContinue(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }
