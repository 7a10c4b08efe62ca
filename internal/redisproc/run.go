package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// run is one life of a server process.
type run struct {
	pid      int
	process  *os.Process
	logStart int64         // where the log of this life begins
	done     chan struct{} // closed when the process is gone and reaped
	err      error         // its exit status; read after done
}

// spawn starts the process. The goroutine that starts it keeps its thread until
// the process ends, since on Linux the death of that thread kills the child.
func (p *Proc) spawn() (*run, error) {
	log, err := os.OpenFile(p.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	stat, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	args := []string{p.confPath()}
	if p.opts.Sentinel {
		args = append(args, "--sentinel")
	}
	cmd := exec.Command(p.binary, args...)
	cmd.Dir = p.dir
	if len(p.opts.Env) > 0 {
		cmd.Env = append(os.Environ(), p.opts.Env...)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr()

	r := &run{done: make(chan struct{}), logStart: stat.Size()}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			r.pid, r.process = cmd.Process.Pid, cmd.Process
		}
		started <- err
		if err != nil {
			return
		}
		r.err = cmd.Wait()
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.binary, err)
	}
	return r, nil
}

// kill ends the process at once, paused or not, and waits until it is gone.
func (r *run) kill() error {
	if err := r.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", r.pid, err)
	}
	<-r.done
	return nil
}

func (r *run) alive() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

func (p *Proc) confPath() string { return filepath.Join(p.dir, "redis.conf") }

func (p *Proc) setRun(r *run) {
	p.runMu.Lock()
	defer p.runMu.Unlock()
	p.run = r
}

func (p *Proc) current() *run {
	p.runMu.Lock()
	defer p.runMu.Unlock()
	return p.run
}
