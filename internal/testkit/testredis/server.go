package testredis

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// Server is one redis-server of a test. Its methods fail the test that started
// it when they cannot do their work.
type Server struct {
	t    testing.TB
	proc *redisproc.Proc
	opts options
	tls  *certFiles
}

// ProgramEnv names the variable with the path of the server that tests start in
// place of the machine's own; `make servers` sets it.
const ProgramEnv = "LOCKSTEWARD_REDIS_SERVER"

// program returns the path of the server that tests start.
func program() (string, error) {
	if path := os.Getenv(ProgramEnv); path != "" {
		return path, nil
	}
	return redisproc.Binary()
}

// Available reports whether this machine has a redis-server.
func Available() bool {
	_, err := program()
	return err == nil
}

// Start starts a redis-server that is gone at the end of the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	need(t)
	return start(t, collect(opts))
}

// need skips or fails a test that cannot have a server.
func need(t testing.TB) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("needs a real redis-server: not run with -short")
	case Available():
	case os.Getenv("CI") != "":
		t.Fatalf("%v", redisproc.ErrNotInstalled)
	default:
		t.Skipf("SKIPPED, NOTHING TESTED: %v", redisproc.ErrNotInstalled)
	}
}

func start(t testing.TB, o options) *Server {
	t.Helper()
	s := &Server{t: t, opts: o}
	user, password := o.login()
	s.launch(redisproc.Options{
		Dir:      t.TempDir(),
		Config:   o.lines(),
		Env:      o.env,
		Socket:   o.socket,
		Cluster:  o.cluster,
		Username: user,
		Password: password,
	})
	return s
}

// launch starts the process and registers its end.
func (s *Server) launch(po redisproc.Options) {
	s.t.Helper()
	po.Program = os.Getenv(ProgramEnv)
	if s.opts.tls {
		files, err := testCerts(po.Dir)
		if err != nil {
			s.t.Fatalf("make certificates: %v", err)
		}
		s.tls = files
		po.TLS = &redisproc.TLS{CAFile: files.ca, CertFile: files.cert, KeyFile: files.key}
	}
	proc, err := redisproc.Start(s.t.Context(), po)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	s.proc = proc
	s.t.Cleanup(s.end)
}

func (s *Server) end() {
	if err := s.proc.Close(); err != nil {
		s.t.Errorf("end redis: %v", err)
	}
	if !s.t.Failed() {
		return
	}
	s.t.Logf("log of redis %s ends:\n%s", s.Addr(), redisproc.Tail(s.LogPath(), 40))
	data, err := os.ReadFile(s.LogPath())
	if err == nil {
		name := "redis-" + filepath.Base(s.Addr()) + ".log"
		err = os.WriteFile(filepath.Join(s.t.ArtifactDir(), name), data, 0o600)
	}
	if err != nil {
		s.t.Logf("keep log of redis: %v", err)
	}
}

// Addr returns host:port, or the path of the socket.
func (s *Server) Addr() string { return s.proc.Addr() }

// URL returns the address as the configuration of a target wants it, database
// 0 and no credentials: redis://, rediss:// or unix://.
func (s *Server) URL() string {
	switch {
	case s.opts.socket:
		return "unix://" + s.Addr()
	case s.opts.tls:
		return "rediss://" + s.Addr() + "/0"
	default:
		return "redis://" + s.Addr() + "/0"
	}
}

// PID returns the process id of the server.
func (s *Server) PID() int { return s.proc.PID() }

// LogPath returns the file with all that the server wrote.
func (s *Server) LogPath() string { return s.proc.LogPath() }

// TLSConfig returns what a client needs, with a client certificate; nil
// without [WithTLS].
func (s *Server) TLSConfig() *tls.Config { return s.proc.TLSConfig() }

// CAFile returns the PEM file of the CA; "" without [WithTLS].
func (s *Server) CAFile() string {
	if s.tls == nil {
		return ""
	}
	return s.tls.ca
}

// ClientCertFiles returns the PEM files of a certificate and key that the
// server accepts from clients; "" without [WithTLS].
func (s *Server) ClientCertFiles() (cert, key string) {
	if s.tls == nil {
		return "", ""
	}
	return s.tls.cert, s.tls.key
}

// Options returns options for a client with all permissions, for the caller to
// change. Nothing but the login is sent on connect.
func (s *Server) Options() *redis.Options {
	user, password := s.opts.login()
	return &redis.Options{
		Network:                  s.proc.Network(),
		Addr:                     s.proc.Addr(),
		Username:                 user,
		Password:                 password,
		TLSConfig:                s.TLSConfig(),
		DisableIdentity:          true,
		MaintNotificationsConfig: quiet(),
	}
}

// Client returns a client with all permissions, closed at the end of the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewClient(s.Options()))
}

// ClientAs returns a client that logs in as an ACL user, closed at the end of
// the test.
func (s *Server) ClientAs(t testing.TB, user, password string) *redis.Client {
	t.Helper()
	o := s.Options()
	o.Username, o.Password = user, password
	return closing(t, redis.NewClient(o))
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func closing[C interface{ Close() error }](t testing.TB, client C) C {
	t.Helper()
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return client
}

// Pause stops the process (SIGSTOP): connections stay open, nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.must(s.proc.Pause())
}

// Resume ends a [Server.Pause].
func (s *Server) Resume() {
	s.t.Helper()
	s.must(s.proc.Resume())
}

// Kill ends the process (SIGKILL) and returns when it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	s.must(s.proc.Kill())
}

// Restart kills the process if it runs, starts it again at the same address,
// and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.must(s.proc.Restart(context.WithoutCancel(s.t.Context())))
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v", err)
	}
}
