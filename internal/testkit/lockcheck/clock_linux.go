package lockcheck

import (
	"syscall"
	"time"
	"unsafe"
)

// clockMonotonic is CLOCK_MONOTONIC of clock_gettime(2).
const clockMonotonic = 1

// Now returns the nanoseconds of a clock that never steps and that all processes
// of the machine share.
func Now() int64 {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // The call writes into ts.
	if errno != 0 {
		return int64(time.Since(start)) // The kernel has had this clock since 2.6.
	}
	return ts.Nano()
}

var start = time.Now()
