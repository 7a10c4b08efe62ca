//go:build linux && (amd64 || arm64)

package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// brokenEnv makes this test binary write to a store on a disk that fails from some
// moment on: "CALL PATH", where CALL is fsync or pwrite.
const brokenEnv = "LOCKSTEWARD_STORE_TEST_BROKEN_DISK"

// failing has the kernel answer these system calls with EIO, for good, those of the
// whole process or of the thread alone: a seccomp filter (linux/seccomp.h,
// linux/bpf_common.h).
func failing(whole bool, calls ...uintptr) error {
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	const (
		load, equal, give = 0x20, 0x15, 0x06 // BPF_LD+W+ABS, BPF_JMP+JEQ+K, BPF_RET+K
		allow, errno      = 0x7fff0000, 0x00050000
		noNewPrivileges   = 38
		setFilter, tsync  = 1, 1
	)
	flags := uintptr(0)
	if whole {
		flags = tsync
	}
	seccomp := uintptr(317)
	if runtime.GOARCH == "arm64" {
		seccomp = 277
	}
	program := []instruction{{code: load}} // the number of the system call
	for i, call := range calls {
		program = append(program, instruction{equal, uint8(len(calls) - i), 0, uint32(call)})
	}
	program = append(program, instruction{code: give, k: allow}, instruction{code: give, k: errno | uint32(syscall.EIO)})
	what := struct {
		n     uint16
		first *instruction
	}{uint16(len(program)), &program[0]}
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return fmt.Errorf("give up privileges: %w", err)
	}
	if _, _, err := syscall.Syscall(seccomp, setFilter, flags, uintptr(unsafe.Pointer(&what))); err != 0 {
		return fmt.Errorf("install filter: %w", err)
	}
	return nil
}

// TestBrokenDiskChild is no test: it is the process of TestDiskThatFails.
func TestBrokenDiskChild(t *testing.T) {
	call, path, ok := strings.Cut(os.Getenv(brokenEnv), " ")
	if !ok {
		t.Skip("it is the child of TestDiskThatFails")
	}
	s, err := store.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(n int) {
		switch err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "test", Subject: fmt.Sprint(n)}); {
		case err == nil:
			fmt.Println("wrote", n)
		case errors.Is(err, store.ErrUnsure):
			fmt.Println("unsure", n, err)
		default:
			fmt.Println("refused", n, err)
		}
	}
	for n := range 20 {
		write(n)
	}
	calls := map[string][]uintptr{"fsync": {syscall.SYS_FSYNC, syscall.SYS_FDATASYNC}, "pwrite": {syscall.SYS_PWRITE64}}[call]
	if err := failing(true, calls...); err != nil {
		fmt.Println("no filter:", err)
		return
	}
	for n := 20; n < 25; n++ {
		write(n)
	}
	if list, err := s.Entries(t.Context(), store.EntryQuery{Limit: 100}); err != nil || len(list) < 20 {
		t.Errorf("what was written is not read: %d, %v", len(list), err)
	}
	fmt.Println("end")
	_ = s.Close() // it may fail to tidy up
}

// A disk that fails under a store at work, at writing or at keeping what was written:
// no write is reported that is not there afterwards, none that is refused is, it is
// read on, and nothing panics. With another disk all goes on.
// fault: 78
func TestDiskThatFails(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"fsync", "pwrite"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "locksteward.db")
			cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenDiskChild$", "-test.v")
			cmd.Env = append(os.Environ(), brokenEnv+"="+call+" "+path)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if strings.Contains(text, "no filter:") {
				t.Skipf("SKIPPED: no system call can be made to fail here: %s", text)
			}
			if err != nil || !strings.Contains(text, "end\n") || strings.Contains(text, "panic") {
				t.Fatalf("the process ended with %v:\n%s", err, text)
			}
			fate := map[string]string{}
			for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
				if f := strings.Fields(lines.Text()); len(f) > 1 && (f[0] == "wrote" || f[0] == "unsure" || f[0] == "refused") {
					fate[f[1]] = f[0]
					if f[0] != "wrote" && !strings.Contains(lines.Text(), "the disk gave an error") {
						t.Errorf("it does not say why: %s", lines.Text())
					}
				}
			}
			s := openAt(t, "sqlite:"+path)
			entries, err := s.Stored(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			there := map[string]bool{}
			for _, e := range entries {
				there[e.Subject] = true
			}
			failed, unsure := 0, 0
			for n, what := range fate {
				if what == "wrote" && !there[n] || what == "refused" && there[n] {
					t.Errorf("%s was %s, and there: %t", n, what, there[n])
				}
				if what != "wrote" {
					failed++
				}
				if what == "unsure" {
					unsure++
				}
			}
			if call == "fsync" && unsure != 1 {
				t.Errorf("%d writes were tried on a file of which nobody knows what the disk has", unsure)
			}
			if len(fate) != 25 || failed == 0 {
				t.Errorf("%d of %d writes failed: this shows nothing", failed, len(fate))
			}
			if _, err := s.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.AppendEntries(t.Context(), locksteward.Entry{Action: "after"}); err != nil {
				t.Error(err)
			}
		})
	}
}
