// Package testzk gives tests a real ZooKeeper: a directory on a server that the test
// binary shares, or a server of their own to be paused, killed and restarted. Only tests
// import it.
//
// A server is one JVM with a small heap on private ports of the loopback interface. It is
// gone with its directory at the end of its test, the shared one at the end of [Main]. What
// was acknowledged outlives [Server.Kill]. A test that asks for a server is skipped under
// -short and skipped loudly where none is installed; with CI set in the environment it
// fails. Functions fail the test by FailNow and belong to its goroutine.
package testzk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

// TickTime is that of the servers: sessions last between two of it and a minute.
const TickTime = 200 * time.Millisecond

// Server is one ZooKeeper server of a test.
type Server struct {
	t    testing.TB
	proc *proc
}

// Mode is what kind of server a test wants.
type Mode int

// The modes.
const (
	// Standalone serves alone.
	Standalone Mode = iota
	// Admin serves alone, and has an admin server.
	Admin
	// Lonely is one server of an ensemble of three whose others are away: it serves nobody.
	Lonely
	// ReadOnly is [Lonely], and serves clients that ask for no more than reading.
	ReadOnly
	// Member is one of [Ensemble].
	Member
)

// Start starts a server that is gone at the end of the test, in about 2 s. A test that
// does not harm its server uses [Shared].
func Start(t testing.TB, mode Mode) *Server {
	t.Helper()
	p, err := newProc(t.Context(), need(t), mode)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return own(t, p)
}

// StartTLS starts a server that serves alone, and takes clients with TLS as well: at
// [Server.SecureAddr], with a certificate that the authority ca issued. The server's own is
// server.
func StartTLS(t testing.TB, ca *testcert.CA, server testcert.Pair) *Server {
	t.Helper()
	path := need(t)
	dir, err := os.MkdirTemp("", "locksteward-zk-")
	if err != nil {
		t.Fatal(err)
	}
	p := &proc{dir: dir, jar: path, keys: filepath.Join(dir, "server.pem"), roots: filepath.Join(dir, "roots.pem")}
	testcert.Put(t, p.keys, slices.Concat(server.Key, server.Cert))
	testcert.Put(t, p.roots, ca.PEM)
	if err := p.start(t.Context()); err != nil {
		t.Fatalf("%v", err)
	}
	return own(t, p)
}

// own ends a server with its test.
func own(t testing.TB, p *proc) *Server {
	t.Cleanup(func() {
		keepLog(t, p)
		if err := p.close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return &Server{t: t, proc: p}
}

// Ensemble starts three servers that are one ensemble, in about 5 s.
func Ensemble(t testing.TB) []*Server {
	t.Helper()
	procs, err := newEnsemble(t.Context(), need(t))
	if err != nil {
		t.Fatalf("%v", err)
	}
	var out []*Server
	for _, p := range procs {
		out = append(out, own(t, p))
	}
	return out
}

// Leads reports whether the server leads its ensemble.
func (s *Server) Leads() bool {
	answer, err := s.proc.srvr(s.t.Context())
	return err == nil && strings.Contains(answer, "Mode: leader")
}

// shared is the server that the tests of this binary have in common.
var shared struct {
	mu   sync.Mutex
	proc *proc
}

// Shared returns the server that the tests of this binary share. They must not harm it. The
// binary's TestMain must run [Main].
func Shared(t testing.TB) *Server {
	t.Helper()
	jar := need(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.proc == nil {
		p, err := newProc(t.Context(), jar, Standalone)
		if err != nil {
			t.Fatalf("%v", err)
		}
		shared.proc = p
	}
	p := shared.proc
	t.Cleanup(func() { keepLog(t, p) })
	return &Server{t: t, proc: p}
}

// Main is what goleak.VerifyTestMain runs: the tests, then the end of the shared server.
type Main struct{ M *testing.M }

// Run runs the tests.
func (m Main) Run() int {
	code := m.M.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.proc != nil {
		if err := shared.proc.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// Available reports whether this machine has a ZooKeeper server.
func Available() bool {
	_, err := jar()
	return err == nil
}

// need returns where the server is, or skips or fails a test that cannot have one.
func need(t testing.TB) string {
	t.Helper()
	path, err := jar()
	switch {
	case testing.Short():
		t.Skip("needs a real ZooKeeper: not run with -short")
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%v", err)
	default:
		t.Skipf("SKIPPED, NOTHING TESTED: %v", err)
	}
	return path
}

// keepLog shows the log of p if its test failed, and keeps it as an artifact.
func keepLog(t testing.TB, p *proc) {
	t.Helper()
	if !t.Failed() {
		return
	}
	t.Logf("log of ZooKeeper ends:\n%s", tail(p.logPath(), 40))
	data, err := os.ReadFile(p.logPath())
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), filepath.Base(p.dir)+".log"), data, 0o600)
	}
	if err != nil {
		t.Logf("keep log of ZooKeeper: %v", err)
	}
}

// Addr returns host:port.
func (s *Server) Addr() string { return s.proc.addr() }

// SecureAddr returns host:port for clients with TLS, of a server of [StartTLS].
func (s *Server) SecureAddr() string { return fmt.Sprintf("127.0.0.1:%d", s.proc.secure) }

// Admin returns the URL of the admin server, if there is one.
func (s *Server) Admin() string { return fmt.Sprintf("http://127.0.0.1:%d", s.proc.admin) }

var directories atomic.Int64

// Directory creates an empty directory at the root and returns its path, for a test that
// shares its server with others.
func (s *Server) Directory(t testing.TB) string {
	t.Helper()
	path := fmt.Sprintf("/test-%d", directories.Add(1))
	if _, err := s.Client(t, time.Minute).Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
	return path
}

// Client returns a client with a session of its own that ends with the test.
func (s *Server) Client(t testing.TB, session time.Duration) *zk.Conn {
	t.Helper()
	return Connect(t, s.Addr(), session)
}

// Connect returns a client at an address, such as that of a proxy.
func Connect(t testing.TB, addr string, session time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect([]string{addr}, session, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatalf("connect to ZooKeeper: %v", err)
	}
	t.Cleanup(func() {
		conn.Close()
		for range events { // until its goroutines have ended
		}
	})
	return conn
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Pause stops the server (SIGSTOP): connections stay open, nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.must("pause", s.proc.signal(pauseSignal))
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for pid := s.PID(); !stopped(pid); { // a signal takes effect when a thread next runs
		<-tick.C
	}
}

// Resume ends a [Server.Pause].
func (s *Server) Resume() {
	s.t.Helper()
	s.must("resume", s.proc.signal(resumeSignal))
}

// Kill kills the server, and returns when it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	s.must("kill", s.proc.kill())
}

// Restart kills the server if it runs, starts it again at the same address and with its
// data, and returns when it serves.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.must("restart", s.proc.launch(context.WithoutCancel(s.t.Context())))
}

// PID returns the process id of the server.
func (s *Server) PID() int { return s.proc.pid() }

// CPUTime returns how much processor time the server has used; 0 where that cannot be read.
func (s *Server) CPUTime() time.Duration { return cpuTime(s.proc.pid()) }

func (s *Server) must(verb string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s ZooKeeper: %v", verb, err)
	}
}

// tail returns the last n lines of the file at path, or a line that says why they cannot be
// read.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
