//go:build linux && (amd64 || arm64)

package store

import (
	"os"
	"syscall"
)

// dontNeed is POSIX_FADV_DONTNEED of linux/fadvise.h.
const dontNeed = 4

// forget asks the kernel to drop what it has of f in its cache and holds for written:
// what is read next comes from the disk. It may not follow, and nothing rests on it
// alone.
func forget(f *os.File) {
	_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0)
}
