package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// openTerminal returns the two ends of a new terminal: that of the keys and the
// screen, and that of programs.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	n := 0
	raw, err := master.SyscallConn() // Fd would make reads ones that Close does not end
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if err := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			t.Error(err)
		}
		var err error
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// terminalAt starts an interactive shell at a terminal of its own, and returns what
// types there.
func terminalAt(t *testing.T, dir string) (keys func(string)) {
	t.Helper()
	master, slave := openTerminal(t)
	sh := exec.Command("sh", "-i")
	sh.Dir = dir
	sh.Env = append(os.Environ(), "DIR="+dir, "GORACE=atexit_sleep_ms=0", "PS1=$ ", "ENV=")
	sh.Stdin, sh.Stdout, sh.Stderr = slave, slave, slave
	sh.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	done := make(chan struct{})
	var shown strings.Builder
	go func() {
		defer close(done)
		// Reading ends with an error when the last process of the terminal is gone.
		_, _ = io.Copy(&shown, master)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-sh.Process.Pid, syscall.SIGKILL)
		_ = sh.Wait()
		_ = master.Close()
		<-done
		if t.Failed() {
			t.Logf("the terminal shows: %s", shown.String())
		}
	})
	return func(text string) {
		t.Helper()
		if _, err := io.WriteString(master, text); err != nil {
			t.Fatal(err)
		}
	}
}

// At a terminal a command has it: it reads from there, Ctrl-Z stops it together with
// exec, so that the shell goes on, fg continues both, and Ctrl-C reaches it alone.
func TestExecAtATerminal(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	e := &execution{t: t, dir: t.TempDir()}
	keys := terminalAt(t, e.dir)
	if err := unix.Mkfifo(e.dir+"/go", 0o600); err != nil {
		t.Fatal(err)
	}
	wake, err := os.OpenFile(e.dir+"/go", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	// It starts no other program: a shell that is between vfork and execve when Ctrl-Z
	// comes does not stop, but waits for its child, which has.
	script := `trap "echo int > $DIR/reported; exit 8" INT
read line; echo "$line" > $DIR/line
echo $$ > $DIR/pid
read go < $DIR/go; echo on > $DIR/on
while :; do read go < $DIR/go; done`
	if err := os.WriteFile(e.dir+"/script", []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	keys("locksteward exec --server " + srv.URL() + " --key job --lease 60s -- sh ./script\n")
	keys("from the keyboard\n")
	if got := e.await("line"); got != "from the keyboard" {
		t.Errorf("read %q", got)
	}
	pid := e.await("pid")
	keys("\x1a")
	testredis.Eventually(t, 20*time.Second, func() bool { return state(pid) == "T" }, "the command is not stopped")
	keys("echo the shell > $DIR/shell\n")
	e.await("shell")
	if _, err := wake.WriteString("on\n"); err != nil {
		t.Fatal(err)
	}
	keys("fg\n")
	e.await("on")
	keys("\x03")
	keys("echo $? > $DIR/code\n")
	if code := e.await("code"); code != "8" || e.read("reported") != "int\n" {
		t.Errorf("exit code %s, reported %q", code, e.read("reported"))
	}
	if !free(t, srv.Client(t)) {
		t.Error("the lock is left")
	}
}

// state is the letter that the kernel has for a process.
func state(pid string) string {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return rest[:1]
}
