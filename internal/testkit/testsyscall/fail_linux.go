//go:build linux && (amd64 || arm64)

package testsyscall

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// Fsync are the system calls behind fsync.
var Fsync = []uintptr{syscall.SYS_FSYNC, syscall.SYS_FDATASYNC}

// FailInThread makes calls fail with EIO in the calling thread, which it locks to the
// goroutine: both end together.
func FailInThread(calls ...uintptr) error {
	runtime.LockOSThread()
	return fail(0, calls)
}

// FailInProcess makes calls fail with EIO in all threads, until the process ends.
func FailInProcess(calls ...uintptr) error {
	const allThreads = 1 // SECCOMP_FILTER_FLAG_TSYNC
	return fail(allThreads, calls)
}

// fail installs a seccomp filter (linux/seccomp.h, linux/bpf_common.h).
func fail(flags uintptr, calls []uintptr) error {
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	const (
		load, equal, give = 0x20, 0x15, 0x06 // BPF_LD+W+ABS, BPF_JMP+JEQ+K, BPF_RET+K
		allow, errno      = 0x7fff0000, 0x00050000
		noNewPrivileges   = 38
		setFilter         = 1
	)
	seccomp := uintptr(317)
	if runtime.GOARCH == "arm64" {
		seccomp = 277
	}
	program := []instruction{{code: load}} // the number of the system call
	for i, call := range calls {
		program = append(program, instruction{equal, uint8(len(calls) - i), 0, uint32(call)})
	}
	program = append(program, instruction{code: give, k: allow}, instruction{code: give, k: errno | uint32(syscall.EIO)})
	filter := struct {
		n     uint16
		first *instruction
	}{uint16(len(program)), &program[0]}
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return fmt.Errorf("give up privileges: %w", err)
	}
	if _, _, err := syscall.Syscall(seccomp, setFilter, flags, uintptr(unsafe.Pointer(&filter))); err != 0 {
		return fmt.Errorf("install filter: %w", err)
	}
	return nil
}
