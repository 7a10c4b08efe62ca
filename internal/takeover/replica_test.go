package takeover_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testredis"
)

// started is what an agent says when it runs.
var started = regexp.MustCompile(`"agent started".*"console":"([^"]+)"`)

// replica is one agent of several, over all its lives.
type replica struct {
	t     *testing.T
	name  string
	file  string
	proxy *testredis.Proxy // its way to the database
	log   *os.File

	mu      sync.Mutex
	cmd     *exec.Cmd
	stdin   *os.File
	done    chan struct{}
	up      chan struct{}
	console string
	well    bool
}

// Write takes what the process logs.
func (r *replica) Write(raw []byte) (int, error) {
	if at := started.FindSubmatch(raw); at != nil {
		r.mu.Lock()
		if r.console == "" {
			r.console = string(at[1])
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
	cmd.Stdout, cmd.Stderr = r, r
	out, in, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdin = out
	done := make(chan struct{})
	r.mu.Lock()
	r.cmd, r.stdin, r.done, r.up, r.console, r.well = cmd, in, done, make(chan struct{}), "", true
	up := r.up
	r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	_ = out.Close()
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	select {
	case <-up:
	case <-done:
		r.t.Fatalf("%s did not start:\n%s", r.name, r.tail())
	case <-time.After(within):
		r.t.Fatalf("%s does not start:\n%s", r.name, r.tail())
	}
}

func (r *replica) tail() string {
	raw, _ := os.ReadFile(r.log.Name())
	lines := strings.Split(string(raw), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// owner begins the owner of this life's leases, as internal/replicas names them.
func (r *replica) owner() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%s process %d ", r.name, r.cmd.Process.Pid)
}

func (r *replica) set(well bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.well = well
}

// client speaks to the console of a replica that is well.
func (r *replica) client(token locksteward.Secret) *apiclient.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.well || r.console == "" {
		return nil
	}
	c, err := apiclient.New(r.console, token, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 15 * time.Second})
	if err != nil {
		r.t.Error(err)
	}
	return c
}

// kill ends the process at once.
func (r *replica) kill() {
	r.mu.Lock()
	cmd, done, stdin := r.cmd, r.done, r.stdin
	r.well = false
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
	if cmd == nil {
		return
	}
	_ = stdin.Close()
	select {
	case <-done:
	case <-time.After(within):
		r.t.Errorf("%s does not end:\n%s", r.name, r.tail())
		_ = cmd.Process.Kill()
		<-done
	}
}

func (r *replica) freeze() {
	r.set(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := redisproc.Freeze(r.cmd.Process); err != nil {
		r.t.Error(err)
	}
}

func (r *replica) thaw() {
	r.mu.Lock()
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
	r.mu.Unlock()
	r.set(true)
}

// newReplica writes what a replica needs and starts none.
func newReplica(t *testing.T, name, text, dsn, socket string) *replica {
	t.Helper()
	dir := t.TempDir()
	r := &replica{t: t, name: name, file: filepath.Join(dir, "locksteward.yaml"), proxy: testredis.NewProxy(t, socket)}
	var err error
	if r.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.end()
		if t.Failed() {
			t.Logf("%s:\n%s", name, r.tail())
		}
		_ = r.log.Close()
	})
	text += fmt.Sprintf("cluster: {name: %s}\nstore: {dsn: '%s'}\n", name, strings.ReplaceAll(dsn, "ADDRESS", r.proxy.Addr()))
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}
