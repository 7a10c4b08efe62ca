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
	"unsafe"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// A Go program reads its clock from the vDSO, code of the kernel in its own memory:
// there is no library to put a false clock before, as one can do for a C program. So
// that code itself is replaced in the memory of the process, before it runs its first
// instruction. SQLite, which is Go here and asks the kernel by itself, is led there too.

// tellTime takes the place of clock_gettime in the vDSO: the system call, and of what
// it says of CLOCK_REALTIME and CLOCK_MONOTONIC what a clock of another rate says that
// was right when it was made, and to CLOCK_REALTIME whole seconds. Other clocks are
// left as they are. fromGo, behind it, is the same for a caller by the conventions of
// Go. What it reads stands behind them: see the constants.
var tellTime = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x83, 0xff, 0x01, // cmp edi, CLOCK_MONOTONIC
	0x77, 0x3e, // ja the end
	0x48, 0x69, 0x06, 0x00, 0xca, 0x9a, 0x3b, // imul rax, [rsi], 1e9
	0x48, 0x03, 0x46, 0x08, // add rax, [rsi+8]
	0x4c, 0x8d, 0x05, 0x3a, 0, 0, 0, // lea r8, [offsetAt]
	0x49, 0x8b, 0x4c, 0xf8, 0x10, // mov rcx, [r8+rdi*8+16]: when this clock began
	0x48, 0x29, 0xc8, // sub rax, rcx
	0x49, 0x0f, 0xaf, 0x40, 0x08, // imul rax, [r8+8]: the rate
	0x48, 0xc1, 0xf8, 0x0a, // sar rax, rateBits
	0x48, 0x01, 0xc8, // add rax, rcx
	0x31, 0xd2, // xor edx, edx
	0xb9, 0x00, 0xca, 0x9a, 0x3b, // mov ecx, 1e9
	0x48, 0xf7, 0xf1, // div rcx
	0x85, 0xff, // test edi, edi: CLOCK_REALTIME?
	0x75, 0x03, // jnz over the next
	0x49, 0x03, 0x00, // add rax, [r8]: the seconds
	0x48, 0x89, 0x06, // mov [rsi], rax
	0x48, 0x89, 0x56, 0x08, // mov [rsi+8], rdx
	0x31, 0xc0, // the end: xor eax, eax
	0xc3,       // ret
	0x89, 0xdf, // fromGo: mov edi, ebx
	0x48, 0x89, 0xce, // mov rsi, rcx
	0xeb, 0xac, // jmp tellTime
	0xcc, 0xcc, 0xcc, 0xcc,
	0, 0, 0, 0, 0, 0, 0, 0, // offsetAt
	0, 0, 0, 0, 0, 0, 0, 0, // rateAt
	0, 0, 0, 0, 0, 0, 0, 0, // beganAt: CLOCK_REALTIME
	0, 0, 0, 0, 0, 0, 0, 0, // and CLOCK_MONOTONIC, in ns
}

const (
	fromGo   = 0x4d
	offsetAt = 0x58
	rateAt   = offsetAt + 8
	beganAt  = rateAt + 8
	rateBits = 10
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

// run has the clocks run at a rate, from what they say now.
func (w *wall) run(rate float64) error {
	state := binary.LittleEndian.AppendUint64(nil, uint64(int64(rate*(1<<rateBits))))
	for clock := range uintptr(2) {
		var now syscall.Timespec
		if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0); err != 0 {
			return err
		}
		state = binary.LittleEndian.AppendUint64(state, uint64(now.Nano()))
	}
	_, err := w.memory.WriteAt(state, w.offset-offsetAt+rateAt)
	return err
}

// needClock skips a test where no clock can be set.
func needClock(testing.TB) {}

// spawnClocked is [redisproc.Spawn] of a process with clocks of its own: they run at a
// rate, and that on the wall is off by d.
func spawnClocked(cmd *exec.Cmd, d time.Duration, rate float64) (*redisproc.Child, *wall, error) {
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
			if w, err = fitClock(cmd, d, rate); err != nil {
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
func fitClock(cmd *exec.Cmd, d time.Duration, rate float64) (*wall, error) {
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
	if err := errors.Join(err, jumps, w.set(d), w.run(rate), syscall.PtraceDetach(pid)); err != nil {
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
