//go:build unix && !linux

package redisproc

import (
	"os"
	"syscall"
)

func sendStop(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Freeze stops a child of this process (SIGSTOP).
func Freeze(p *os.Process) error { return sendStop(p) }
