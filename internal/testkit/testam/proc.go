package testam

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"
)

const (
	startTimeout = 30 * time.Second
	askTimeout   = 10 * time.Second
	pollEvery    = 5 * time.Millisecond
	maxTail      = 8 << 10
)

// run is one life of the process.
type run struct {
	process *os.Process
	log     *buffer
	done    chan struct{} // closed when the process is gone and reaped
	err     error         // its exit status; read after done
}

// listening is how the log names the address once the process has it.
var listening = regexp.MustCompile(`msg="?Listening on"? address=[0-9.:]+`)

// start runs the process at its address and waits until it is ready.
func (s *Server) start() {
	s.t.Helper()
	args := []string{
		"--config.file=" + filepath.Join(s.dir, "alertmanager.yml"), "--storage.path=" + filepath.Join(s.dir, "data"),
		"--web.listen-address=" + s.addr, "--cluster.listen-address=",
	}
	if s.opts.WebConfig != "" {
		args = append(args, "--web.config.file="+filepath.Join(s.dir, "web.yml"))
	}
	if s.opts.RoutePrefix != "" {
		args = append(args, "--web.route-prefix="+s.opts.RoutePrefix)
	}
	r, err := spawn(s.binary, s.dir, args...)
	if err != nil {
		s.fatal("start", err)
	}
	s.run = r
	if err := s.await(r); err != nil {
		s.fatal("start", fmt.Errorf("%w; its log ends:\n%s", err, r.log.tail()))
	}
}

// await waits until the very process that was started serves: its log says where.
func (s *Server) await(r *run) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if listening.Match(r.log.bytes()) && s.ready() {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("it ended at once: %w", r.err)
		case <-deadline.C:
			return fmt.Errorf("it is not ready after %s", startTimeout)
		case <-tick.C:
		}
	}
}

// ready takes any answer of the listener: with passwords it is a refusal.
func (s *Server) ready() bool {
	if s.opts.WebConfig != "" {
		return true
	}
	resp, err := s.client.Get(s.URL() + "/-/ready")
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// spawn starts the process. The goroutine that starts it keeps its thread until the
// process ends, since on Linux the death of that thread kills it.
func spawn(binary, dir string, args ...string) (*run, error) {
	cmd := exec.Command(binary, args...)
	r := &run{log: &buffer{}, done: make(chan struct{})}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = dir, r.log, r.log, childAttr()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		r.err = cmd.Wait()
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return r, nil
}

// kill ends the process at once and waits until it is gone.
func (r *run) kill() error {
	if err := r.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", r.process.Pid, err)
	}
	<-r.done
	return nil
}

// buffer keeps what a process writes.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.all.Bytes())
}

func (b *buffer) tail() string {
	all := b.bytes()
	return string(all[max(0, len(all)-maxTail):])
}
