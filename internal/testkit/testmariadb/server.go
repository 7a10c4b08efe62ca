package testmariadb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// mysqldEnv names the program of a MySQL server to test with.
const mysqldEnv = "LOCKSTEWARD_TEST_MYSQLD"

// Server is one server of a test.
type Server struct {
	t    testing.TB
	proc *proc
}

// Start starts a MariaDB with some options ("name=value") that is gone at the end of the test, in about
// 3 s. A test that does not harm its server takes a [Database], which is faster.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return start(t, need(t), options)
}

// StartMySQL starts a MySQL as Start does a MariaDB; a test is skipped where there is none.
func StartMySQL(t testing.TB, options ...string) *Server {
	t.Helper()
	program := os.Getenv(mysqldEnv)
	if program == "" || testing.Short() {
		t.Skip("needs a real MySQL: " + mysqldEnv + " names none")
	}
	return start(t, flavour{server: program, mysql: true}, options)
}

func start(t testing.TB, f flavour, options []string) *Server {
	t.Helper()
	p, err := newProc(context.WithoutCancel(t.Context()), f, options)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		showLog(t, p)
		if err := p.close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return &Server{t: t, proc: p}
}

// flavour is which server: MariaDB with its program that makes the data, or MySQL.
type flavour struct {
	server, install string
	mysql           bool
}

// need returns the programs of MariaDB, or skips or fails a test that cannot have them.
func need(t testing.TB) flavour {
	t.Helper()
	f, err := programs()
	switch {
	case testing.Short():
		t.Skip("needs a real MariaDB: not run with -short")
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%v", err)
	default:
		t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	return f
}

func programs() (flavour, error) {
	var f flavour
	for _, place := range []string{"mariadbd", "/usr/sbin/mariadbd", "/usr/libexec/mariadbd"} { // Debian's PATH of a user has no sbin
		if path, err := exec.LookPath(place); err == nil {
			f.server = path
			break
		}
	}
	var err error
	if f.install, err = exec.LookPath("mariadb-install-db"); err != nil || f.server == "" {
		return f, errors.New("MariaDB is not installed: run make deps")
	}
	return f, nil
}

// showLog shows the end of the log of p if its test failed.
func showLog(t testing.TB, p *proc) {
	t.Helper()
	if t.Failed() {
		t.Logf("log of the server ends:\n%s", tail(p.logPath(), 40))
	}
}

// URL returns the URL of a database of the server for a user with all rights and no password.
func (s *Server) URL(database string) string { return s.proc.url(database) }

// DSN is URL of the database test, which each server has.
func (s *Server) DSN() string { return s.URL("test") }

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return s.proc.socket() }

// PID returns the id of the server's process.
func (s *Server) PID() int { return s.proc.pid() }

// LogPath returns the file with all that the server wrote, over all restarts.
func (s *Server) LogPath() string { return s.proc.logPath() }

// Dir returns the server's directory, for files that it is to write.
func (s *Server) Dir() string { return s.proc.dir }

// Pause stops the server (SIGSTOP): connections stay open, nothing answers.
func (s *Server) Pause() { s.t.Helper(); s.must("pause", s.proc.signal(redisproc.Freeze)) }

// Resume ends a [Server.Pause].
func (s *Server) Resume() { s.t.Helper(); s.must("resume", s.proc.signal(sendContinue)) }

// Kill ends the server as a crash would, and returns when it is gone.
func (s *Server) Kill() { s.t.Helper(); s.must("kill", s.proc.kill()) }

// Restart kills the server if it runs, starts it again at the same address and with its data, and
// returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.must("kill", s.proc.kill())
	s.must("restart", s.proc.launch(context.WithoutCancel(s.t.Context())))
}

func (s *Server) must(verb string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s the server: %v", verb, err)
	}
}

// shared is the server that the tests of this binary have in common. It runs while a test uses it.
type shared struct {
	mu    sync.Mutex
	proc  *proc
	users int
	made  int
}

var common shared

// Database returns the URL of a fresh, empty database on a server that the tests of this binary share,
// for a user with all rights and no password. The server is gone with its last test.
func Database(t testing.TB) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	p, name, err := common.enter(ctx, need(t))
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		showLog(t, p)
		if err := common.leave(); err != nil {
			t.Errorf("%v", err)
		}
	})
	if err := p.query(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("create database: %v", err)
	}
	return p.url(name)
}

func (s *shared) enter(ctx context.Context, f flavour) (*proc, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		p, err := newProc(ctx, f, nil)
		if err != nil {
			return nil, "", err
		}
		s.proc = p
	}
	s.users++
	s.made++
	return s.proc, fmt.Sprintf("test_%d", s.made), nil
}

func (s *shared) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	p := s.proc
	s.proc = nil
	return p.close()
}

func (p *proc) url(database string) string {
	scheme := "mariadb"
	if p.flavour.mysql {
		scheme = "mysql"
	}
	return scheme + "://root@localhost/" + database + "?socket=" + url.QueryEscape(p.socket())
}

// tail returns the last n lines of a file, or a line that says why they cannot be read.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
