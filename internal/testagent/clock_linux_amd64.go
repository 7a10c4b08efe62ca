package testagent

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// A Go program reads its clock from the vDSO, code of the kernel in its own memory:
// there is no library to put a false clock before, as one can do for a C program. So
// that code itself is replaced in the memory of the process, before it runs its first
// instruction. SQLite, which is Go here and asks the kernel by itself, is led there too.

// tellTime takes the place of clock_gettime in the vDSO: the system call, and to the
// real time of it what stands at offsetAt. fromGo, behind it, is the same for a caller
// by the conventions of Go.
var tellTime = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi: CLOCK_REALTIME?
	0x75, 0x0a, // jnz the end
	0x48, 0x8b, 0x0d, 0x0e, 0, 0, 0, // mov rcx, [offsetAt]
	0x48, 0x01, 0x0e, // add [rsi], rcx: the seconds
	0xc3, // ret
	0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
	0, 0, 0, 0, 0, 0, 0, 0, // offsetAt
	0x89, 0xdf, // fromGo: mov edi, ebx
	0x48, 0x89, 0xce, // mov rsi, rcx
	0xeb, 0xd1, // jmp tellTime
}

const (
	offsetAt = 0x20
	fromGo   = 0x28
	// sqliteClock is how SQLite reads the clock.
	sqliteClock = "modernc.org/libc.X__clock_gettime"
)

// wall is the wall clock of one process.
type wall struct {
	memory *os.File
	offset int64 // where it stands
}

func (w *wall) set(d time.Duration) error {
	_, err := w.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(int64(d/time.Second))), w.offset)
	return err
}

// needClock skips a test where no clock can be set.
func needClock(testing.TB) {}

// spawnClocked is [redisproc.Spawn] of a process with a wall clock of its own.
func spawnClocked(cmd *exec.Cmd, d time.Duration) (*redisproc.Child, *wall, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Ptrace: true}
	done := make(chan struct{})
	c := &redisproc.Child{Done: done}
	var w *wall
	started := make(chan error)
	go func() {
		// The thread traces it at first, and its death would kill it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if c.Process = cmd.Process; err == nil {
			if w, err = fitClock(cmd, d); err != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		}
		started <- err
		if err != nil {
			return
		}
		c.Err = cmd.Wait()
		_ = w.memory.Close()
		close(done)
	}()
	if err := <-started; err != nil {
		return nil, nil, fmt.Errorf("start %s with a clock of its own: %w", cmd.Path, err)
	}
	return c, w, nil
}

// fitClock replaces the clock of a process that stands at its first instruction, and
// lets it go.
func fitClock(cmd *exec.Cmd, d time.Duration) (*wall, error) {
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		return nil, fmt.Errorf("it does not stand: %v, %w", status, err)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	at, err := vdsoClock(pid, memory)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	sqlite, err := functionOf(cmd.Path, sqliteClock)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	jump := append(binary.LittleEndian.AppendUint64([]byte{0x49, 0xbb}, uint64(at+fromGo)), 0x41, 0xff, 0xe3) // mov r11, fromGo; jmp r11
	w := &wall{memory, at + offsetAt}
	_, err = memory.WriteAt(tellTime, at)
	_, jumps := memory.WriteAt(jump, sqlite)
	if err := errors.Join(err, jumps, w.set(d), syscall.PtraceDetach(pid)); err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	return w, nil
}

// vdsoClock is where a process has the clock that the kernel gives it.
func vdsoClock(pid int, memory *os.File) (int64, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var begin, end int64
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &begin, &end); err != nil {
			return 0, err
		}
		image := make([]byte, end-begin)
		if _, err := memory.ReadAt(image, begin); err != nil {
			return 0, err
		}
		file, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, err
		}
		symbols, err := file.DynamicSymbols()
		if err != nil {
			return 0, err
		}
		for _, s := range symbols {
			if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(tellTime)) {
				return begin + int64(s.Value), nil
			}
		}
	}
	return 0, errors.New("the kernel gives it no clock")
}

// functionOf is where a Go program has a function.
func functionOf(program, name string) (int64, error) {
	file, err := elf.Open(program)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines, text := file.Section(".gopclntab"), file.Section(".text")
	if file.Type != elf.ET_EXEC || lines == nil || text == nil {
		return 0, fmt.Errorf("%s is not a Go program at a fixed address", program)
	}
	raw, err := lines.Data()
	if err != nil {
		return 0, err
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(raw, text.Addr))
	if err != nil {
		return 0, err
	}
	f := table.LookupFunc(name)
	if f == nil {
		return 0, fmt.Errorf("%s has no %s", program, name)
	}
	return int64(f.Entry), nil
}
