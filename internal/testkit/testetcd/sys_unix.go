//go:build unix

package testetcd

import (
	"os"
	"syscall"
)

func signalContinue(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
