package soak_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// started is what an agent says when it runs.
var started = regexp.MustCompile(`"agent started".*"metrics":"([^"]+)"`)

// replica is one agent of two, over all its lives.
type replica struct {
	t    *testing.T
	name string
	file string
	log  *os.File

	mu      sync.Mutex
	cmd     *exec.Cmd
	stdin   *os.File
	done    chan struct{}
	up      chan struct{}
	metrics string
	life    int
	frozen  bool
}

// Write takes what the process logs.
func (r *replica) Write(raw []byte) (int, error) {
	if at := started.FindSubmatch(raw); at != nil {
		r.mu.Lock()
		if r.metrics == "" {
			r.metrics = string(at[1])
			close(r.up)
		}
		r.mu.Unlock()
	}
	return r.log.Write(raw)
}

// start begins a life.
func (r *replica) start() {
	r.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+r.file)
	if *program != "" {
		cmd = exec.Command(*program, "run", "--config", r.file)
	}
	cmd.Stdout, cmd.Stderr = r, r
	out, in, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdin = out
	done := make(chan struct{})
	r.mu.Lock()
	r.cmd, r.stdin, r.done, r.up, r.metrics = cmd, in, done, make(chan struct{}), ""
	r.life++
	up := r.up
	r.mu.Unlock()
	if err = r.spawn(cmd, done); err != nil {
		r.t.Fatal(err)
	}
	_ = out.Close()
	select {
	case <-up:
	case <-done:
		r.t.Fatalf("%s did not start:\n%s", r.name, r.tail())
	case <-time.After(within):
		r.t.Fatalf("%s does not start:\n%s", r.name, r.tail())
	}
}

// spawn starts a process on a thread that lasts as long as it: the kernel kills it
// when that thread ends, and so with this process.
func (r *replica) spawn(cmd *exec.Cmd, done chan<- struct{}) error {
	cmd.SysProcAttr = childAttr()
	begun := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			_ = cmd.Wait()
			close(done)
		}
	}()
	return <-begun
}

func (r *replica) tail() string {
	raw, _ := os.ReadFile(r.log.Name())
	lines := strings.Split(string(raw), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// at is where to ask for metrics, and which life that is; empty while it is frozen
// or gone.
func (r *replica) at() (addr string, life int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.frozen {
		return "", r.life
	}
	return r.metrics, r.life
}

// kill ends the process at once.
func (r *replica) kill() {
	r.mu.Lock()
	cmd, done, stdin := r.cmd, r.done, r.stdin
	r.metrics = ""
	r.mu.Unlock()
	_ = cmd.Process.Kill()
	<-done
	_ = stdin.Close()
}

// end asks the process to end, and waits.
func (r *replica) end() {
	r.mu.Lock()
	cmd, done, stdin := r.cmd, r.done, r.stdin
	r.mu.Unlock()
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = stdin.Close()
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(time.Minute):
		r.t.Errorf("%s does not end:\n%s", r.name, r.tail())
		_ = cmd.Process.Kill()
		<-done
	}
}

func (r *replica) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
	if err := redisproc.Freeze(r.cmd.Process); err != nil {
		r.t.Error(err)
	}
}

func (r *replica) thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = false
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
}

// newReplica writes what a replica needs and starts none.
func newReplica(t *testing.T, name, text string) *replica {
	t.Helper()
	dir := t.TempDir()
	r := &replica{t: t, name: name, file: filepath.Join(dir, "locksteward.yaml")}
	var err error
	if r.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.end()
		if t.Failed() {
			t.Logf("%s:\n%s", name, r.tail())
		}
		if *logs != "" {
			raw, _ := os.ReadFile(r.log.Name())
			_ = os.WriteFile(filepath.Join(*logs, name+".log"), raw, 0o600)
		}
		_ = r.log.Close()
	})
	text += fmt.Sprintf("cluster: {name: %s}\n", name)
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}
