//go:build !linux

package testzk

import (
	"os"
	"syscall"
	"time"
)

// Only Linux can pause servers in these tests; elsewhere the signal is refused.
const (
	pauseSignal  = syscall.Signal(-1)
	resumeSignal = syscall.Signal(-1)
)

var _ os.Signal = pauseSignal

func childAttr() *syscall.SysProcAttr { return nil }

func stopped(int) bool { return true }

func cpuTime(int) time.Duration { return 0 }
