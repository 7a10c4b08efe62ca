package testmariadb

import (
	"os"
	"syscall"
)

// childAttr makes the kernel kill the server when the thread that started it ends, and keeps a Ctrl-C
// at the terminal from reaching it before us.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func sendContinue(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
