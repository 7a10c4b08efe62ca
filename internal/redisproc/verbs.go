package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrClosed says that the Proc was closed.
var ErrClosed = errors.New("redis server is closed")

// ErrNotRunning says that the process has ended.
var ErrNotRunning = errors.New("redis server is not running")

// Pause stops the process with SIGSTOP and returns when it stands: connections
// stay open and nothing answers. Errors: [ErrNotRunning]; [errors.ErrUnsupported] where the system
// has no such signal.
func (p *Proc) Pause() error { return p.signal("pause", sendStop) }

// Resume ends a [Proc.Pause]. Errors are those of Pause.
func (p *Proc) Resume() error { return p.signal("resume", sendContinue) }

func (p *Proc) signal(verb string, send func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.current()
	if r == nil || !r.Alive() {
		return fmt.Errorf("%s redis: %w", verb, ErrNotRunning)
	}
	if err := send(r.Process); err != nil {
		return fmt.Errorf("%s redis: %w", verb, err)
	}
	return nil
}

// Kill ends the process with SIGKILL, as a crash would, and returns when it is
// gone. Killing one that has ended is no error.
func (p *Proc) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killNow()
}

func (p *Proc) killNow() error {
	r := p.current()
	if r == nil {
		return nil
	}
	return r.Kill()
}

// Stop ends the process with SIGTERM, as an orderly shutdown would, and
// returns when it is gone; after 5s, or when ctx ends, it kills it.
func (p *Proc) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.current()
	if r == nil || !r.Alive() {
		return nil
	}
	// A paused process takes SIGTERM only after SIGCONT. Errors here end in
	// the kill below.
	termErr := sendTerminate(r.Process)
	contErr := sendContinue(r.Process)
	if termErr == nil && (contErr == nil || errors.Is(contErr, os.ErrProcessDone)) {
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-r.Done:
			return nil
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	return r.Kill()
}

// Restart kills the process if it runs and starts it again with the same
// address, directory and configuration file (which Sentinels and cluster nodes
// have rewritten), and returns when it answers. Errors: [ErrClosed], or those
// of [Start].
func (p *Proc) Restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("restart redis: %w", ErrClosed)
	}
	if err := p.killNow(); err != nil {
		return fmt.Errorf("restart redis: %w", err)
	}
	if err := p.launch(ctx); err != nil {
		return fmt.Errorf("restart redis: %w", err)
	}
	return nil
}

// Close kills the process and gives back its port and the directories that
// [Start] made. Later calls do nothing.
func (p *Proc) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	errs := []error{p.killNow(), p.port.release(), p.bus.release()}
	for _, dir := range p.ownDirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
