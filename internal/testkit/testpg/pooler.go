package testpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// errNoPooler says that the machine has no pgbouncer.
var errNoPooler = errors.New("pgbouncer is not installed: run make deps")

func findPooler() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/pgbouncer" // not in everybody's PATH
	if _, err := os.Stat(debian); err == nil {
		return debian, nil
	}
	return "", errNoPooler
}

// Pooler starts a pgbouncer before the server and returns the DSN of the same database through it: in
// transaction mode, with size connections to the server. It is gone at the end of the test.
func (s *Server) Pooler(size int) string {
	s.t.Helper()
	path, err := findPooler()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		s.t.Fatalf("%v", err)
	default:
		s.t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	p := &pooler{proc: &proc{bin: filepath.Dir(path), as: s.proc.as}}
	s.t.Cleanup(func() {
		keepLog(s.t, p.proc)
		if err := p.close(); err != nil {
			s.t.Errorf("%v", err)
		}
	})
	if err := p.start(context.WithoutCancel(s.t.Context()), s.proc.dir, size); err != nil {
		s.t.Fatalf("start pgbouncer: %v; its log ends:\n%s", err, tail(p.proc.logPath(), 30))
	}
	return p.proc.dsn("postgres")
}

// pooler is one pgbouncer: a directory with configuration, socket and log, and its process.
type pooler struct {
	proc *proc
	run  *run
}

func (p *pooler) start(ctx context.Context, server string, size int) error {
	var err error
	if p.proc.dir, err = os.MkdirTemp("", "locksteward-pb-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	config := fmt.Sprintf("[databases]\n* = host=%s port=%s user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = %s\nunix_socket_dir = %s\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = %d\n", server, port, port, p.proc.dir, size)
	path := filepath.Join(p.proc.dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := p.proc.as.own(p.proc.dir); err != nil {
		return fmt.Errorf("give directory away: %w", err)
	}
	log, err := os.OpenFile(p.proc.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := p.proc.command(context.WithoutCancel(ctx), "pgbouncer", path)
	cmd.Stdout, cmd.Stderr = log, log
	if p.run, err = start(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.proc.await(ctx, p.run)
}

func (p *pooler) close() error {
	if p.run != nil {
		err := unlessGone(sendKill(p.run.process.Pid))
		select {
		case <-p.run.done:
		case <-time.After(stopTimeout):
			err = errors.Join(err, errors.New("pgbouncer does not end"))
		}
		if err != nil {
			return err
		}
	}
	if p.proc.dir == "" {
		return nil
	}
	return os.RemoveAll(p.proc.dir)
}
