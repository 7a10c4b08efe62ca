package redisproc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// run is one life of a server process.
type run struct {
	*Child
	logStart int64 // where the log of this life begins
}

// spawn starts the process.
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
	child, err := Spawn(cmd)
	if err != nil {
		return nil, err
	}
	return &run{Child: child, logStart: stat.Size()}, nil
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
