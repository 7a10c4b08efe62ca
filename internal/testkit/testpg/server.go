package testpg

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds initdb, and each start of the server.
const startTimeout = 60 * time.Second

// Server is one PostgreSQL server of a test. Its methods fail the test that
// started it when they cannot do their work.
type Server struct {
	t    testing.TB
	proc *proc
}

// Available reports whether this machine has a PostgreSQL server.
func Available() bool {
	_, err := programs(places)
	return err == nil
}

// Start starts a server with some settings ("name=value") that is gone at the end of the test, in
// about 2 s. A test that does not harm its server takes a [Database], which is faster.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	p, err := newProc(context.WithoutCancel(t.Context()), need(t), settings...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s := &Server{t: t, proc: p}
	t.Cleanup(func() {
		keepLog(t, p)
		if err := p.close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// need returns where the programs are, or skips or fails a test that cannot
// have a server.
func need(t testing.TB) string {
	t.Helper()
	bin, err := programs(places)
	switch {
	case testing.Short():
		t.Skip("needs a real PostgreSQL: not run with -short")
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%v", err)
	default:
		t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	return bin
}

// keepLog shows the log of p if its test failed, and keeps it as an artifact.
func keepLog(t testing.TB, p *proc) {
	t.Helper()
	if !t.Failed() {
		return
	}
	t.Logf("log of PostgreSQL ends:\n%s", tail(p.logPath(), 40))
	data, err := os.ReadFile(p.logPath())
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), filepath.Base(p.dir)+".log"), data, 0o600)
	}
	if err != nil {
		t.Logf("keep log of PostgreSQL: %v", err)
	}
}

// DSN returns the URL of the server's database postgres for a user with all
// rights and no password, as pgx and libpq read it.
func (s *Server) DSN() string { return s.proc.dsn("postgres") }

// PID returns the id of the server's first process.
func (s *Server) PID() int { return s.proc.pid() }

// LogPath returns the file with all that the server wrote, over all restarts.
func (s *Server) LogPath() string { return s.proc.logPath() }

// Pause stops every process of the server (SIGSTOP): connections stay open,
// nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.must("pause", s.proc.pause())
}

// Resume ends a [Server.Pause].
func (s *Server) Resume() {
	s.t.Helper()
	s.must("resume", s.proc.resume())
}

// Kill ends the server as a crash would, and returns when it is gone: clients
// see their connections break, and the next start goes through recovery.
func (s *Server) Kill() {
	s.t.Helper()
	s.must("kill", s.proc.kill())
}

// Restart kills the server if it runs, starts it again at the same address and
// with its data, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.must("kill", s.proc.kill())
	s.must("restart", s.proc.launch(context.WithoutCancel(s.t.Context())))
}

func (s *Server) must(verb string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s PostgreSQL: %v", verb, err)
	}
}

// tail returns the last n lines of the file at path, or a line that says why
// they cannot be read.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
