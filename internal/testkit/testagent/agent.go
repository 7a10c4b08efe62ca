package testagent

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/redisproc"
)

const (
	startTimeout = time.Minute
	endTimeout   = time.Minute
	tailLines    = 100
)

// Options are what an agent runs on.
type Options struct {
	// Name is what the test calls it.
	Name string
	// File is the path of its configuration; empty: a file of its own.
	File string
	// Config is written to File; empty: it is there.
	Config string
	// Program is run with this configuration instead of the test binary.
	Program string
	// Env are variables besides those of the test, NAME=value each.
	Env []string
	// Clocked gives its processes a wall clock that [Agent.SetClock] sets; where none can
	// be given the test is skipped.
	Clocked bool
	// Rate is how fast the clocks of one that is Clocked run, on the wall and monotonic:
	// 1.5 is half as fast again as the true time. They are right when a life begins. 0 is 1.
	Rate float64
	// Log is the path of its log; empty: a file that is gone with the test.
	Log string
	// Within is how long [Agent.Start] waits; a minute unless set.
	Within time.Duration
}

// Agent is one agent of a test over all its lives.
type Agent struct {
	// Name is that of the options.
	Name string
	t    testing.TB
	opts Options
	log  *os.File
	// clock is how far its clock is off; of the goroutine of the test.
	clock time.Duration

	mu     sync.Mutex
	now    *life // the last one; nil before the first
	lives  int
	frozen bool
}

// Place is where an agent is to be reached.
type Place struct {
	Metrics string // host:port
	Console string // URL
	Life    int    // of the agent, from 1
}

// New returns an agent that is not started yet, and is gone at the end of the test.
func New(t testing.TB, o Options) *Agent {
	t.Helper()
	if o.Clocked {
		needClock(t)
	}
	if o.File == "" {
		o.File = filepath.Join(t.TempDir(), "locksteward.yaml")
	}
	if o.Config != "" {
		if err := os.WriteFile(o.File, []byte(o.Config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &Agent{Name: o.Name, t: t, opts: o}
	if o.Log == "" {
		o.Log = filepath.Join(t.TempDir(), "log")
	}
	var err error
	if a.log, err = os.Create(o.Log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

// close ends the agent and, when the test failed, prints and keeps its log.
func (a *Agent) close() {
	a.End()
	if a.t.Failed() {
		a.t.Logf("the log of %s ends:\n%s", a.Name, a.Tail())
		raw, err := os.ReadFile(a.LogPath())
		if err == nil {
			err = os.WriteFile(filepath.Join(a.t.ArtifactDir(), a.Name+".log"), raw, 0o600)
		}
		if err != nil {
			a.t.Logf("keep log of %s: %v", a.Name, err)
		}
	}
	_ = a.log.Close()
}

// Start begins a life and waits until the agent says that it runs.
func (a *Agent) Start() {
	a.t.Helper()
	a.Begin()
	within := cmp.Or(a.opts.Within, startTimeout)
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-a.Up():
	case <-a.Done():
		a.t.Fatalf("%s did not start", a.Name)
	case <-late.C:
		a.t.Fatalf("%s does not start within %s", a.Name, within)
	}
}

// Begin begins a life and waits for nothing.
func (a *Agent) Begin() {
	a.t.Helper()
	if now := a.last(); now != nil && now.child.Alive() {
		a.t.Fatalf("%s runs already", a.Name)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(append(os.Environ(), childEnv+"="+a.opts.File), a.opts.Env...)
	if a.opts.Program != "" {
		cmd = exec.Command(a.opts.Program, "run", "--config", a.opts.File)
		cmd.Env = append(os.Environ(), a.opts.Env...)
	}
	l := &life{log: a.log, up: make(chan struct{}), cmd: cmd}
	cmd.Stdout, cmd.Stderr = l, l
	var err error
	if l.stdin, err = cmd.StdinPipe(); err != nil {
		a.t.Fatal(err)
	}
	if a.opts.Clocked {
		l.child, l.wall, err = spawnClocked(cmd, a.clock, cmp.Or(a.opts.Rate, 1))
	} else {
		l.child, err = redisproc.Spawn(cmd)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.frozen = l, false
	a.lives++
}

func (a *Agent) last() *life {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

// Up is closed when the agent says that it runs in this life.
func (a *Agent) Up() <-chan struct{} { return a.last().up }

// Done is closed when the process of this life is gone.
func (a *Agent) Done() <-chan struct{} { return a.last().child.Done }

// PID is the process of the last life.
func (a *Agent) PID() int { return a.last().child.Process.Pid }

// ExitCode is how the process ended, once [Agent.Done] is closed.
func (a *Agent) ExitCode() int {
	l := a.last()
	<-l.child.Done
	return l.cmd.ProcessState.ExitCode()
}

// Where is how to reach it now. There is no address before it runs, while it is frozen
// and after [Agent.Kill]; one that ended by itself keeps its addresses, so that it is
// missed there.
func (a *Agent) Where() Place {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := Place{Life: a.lives}
	if a.now != nil && !a.frozen {
		out.Metrics, out.Console = a.now.addresses()
	}
	return out
}

// Signal sends a signal to the process, which is there to take it.
func (a *Agent) Signal(s syscall.Signal) {
	a.t.Helper()
	if err := a.last().child.Process.Signal(s); err != nil {
		a.t.Fatalf("signal %s: %v", a.Name, err)
	}
}

// TrySignal sends a signal if the process runs and is reachable, see [Agent.Where], and
// says whether it did.
func (a *Agent) TrySignal(s syscall.Signal) bool {
	l := a.last()
	return a.Where().Metrics != "" && l.child.Process.Signal(s) == nil
}

// Kill ends the process at once and returns when it is gone: whether it was alive.
func (a *Agent) Kill() bool {
	a.t.Helper()
	l := a.last()
	l.forget()
	alive := l.child.Alive()
	if err := l.child.Kill(); err != nil {
		a.t.Fatalf("kill %s: %v", a.Name, err)
	}
	return alive
}

// End asks the process to end and waits until it is gone. Nothing that runs is no
// failure.
func (a *Agent) End() {
	a.t.Helper()
	l := a.last()
	if l == nil || !l.child.Alive() {
		return
	}
	l.forget()
	// One way only: a signal behind the end of stdin may meet a process that has put
	// its handlers away already.
	_ = l.stdin.Close()
	_ = l.child.Thaw()
	if a.opts.Program != "" {
		_ = l.child.Terminate()
	}
	late := time.NewTimer(endTimeout)
	defer late.Stop()
	select {
	case <-l.child.Done:
	case <-late.C:
		a.t.Errorf("%s does not end within %s", a.Name, endTimeout)
		_ = l.child.Kill()
	}
}

// Freeze stops the process (SIGSTOP): connections stay open, nothing answers.
func (a *Agent) Freeze() {
	a.t.Helper()
	a.freezes(true)
	if err := a.last().child.Freeze(); err != nil {
		a.t.Fatalf("freeze %s: %v", a.Name, err)
	}
}

// Thaw ends an [Agent.Freeze].
func (a *Agent) Thaw() {
	a.t.Helper()
	if err := a.last().child.Thaw(); err != nil {
		a.t.Fatalf("thaw %s: %v", a.Name, err)
	}
	a.freezes(false)
}

func (a *Agent) freezes(is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.frozen = is
}

// LogPath is the file with all that the agent wrote in all lives.
func (a *Agent) LogPath() string { return a.log.Name() }

// Tail is the end of the log.
func (a *Agent) Tail() string {
	raw, err := os.ReadFile(a.LogPath())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(raw), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
