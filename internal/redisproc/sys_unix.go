//go:build unix

package redisproc

import (
	"os"
	"syscall"
)

func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

func sendContinue(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

func sendTerminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
