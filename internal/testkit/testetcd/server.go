package testetcd

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// Options say what an etcd is like; the zero value is one member without TLS.
type Options struct {
	// Members is how many there are; 0 is one.
	Members int
	// Cert and Key are files of the certificate for clients; "": no TLS. With CA, clients
	// need a certificate by it.
	Cert, Key, CA string
	// Args are further arguments of the program.
	Args []string
}

// Server is an etcd of a test. Its methods fail the test that started it when they
// cannot do their work.
type Server struct {
	t       testing.TB
	scheme  string
	members []*proc
}

// Available reports whether this machine has an etcd server.
func Available() bool {
	_, err := exec.LookPath("etcd")
	return err == nil
}

// Start starts an etcd of one member that is gone at the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is [Start] with options.
func StartWith(t testing.TB, o Options) *Server {
	t.Helper()
	need(t)
	s := &Server{t: t, scheme: "http"}
	if o.Cert != "" {
		s.scheme = "https"
		o.Args = append(slices.Clone(o.Args), "--cert-file", o.Cert, "--key-file", o.Key)
		if o.CA != "" {
			o.Args = append(o.Args, "--client-cert-auth", "--trusted-ca-file", o.CA)
		}
	}
	var err error
	for range portTries {
		if err = s.start(o); err == nil {
			return s
		}
	}
	t.Fatalf("start etcd: %v", err)
	return nil
}

// start makes a directory and all members in it.
func (s *Server) start(o Options) error {
	place := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		place = "/dev/shm" // no sync of it takes any time
	}
	dir, err := os.MkdirTemp(place, "locksteward-etcd-")
	if err != nil {
		return err
	}
	var peers []string
	s.members = nil
	for i := range max(o.Members, 1) {
		p := &proc{dir: dir, name: "m" + strconv.Itoa(i+1), args: o.Args}
		if p.addr, err = freeAddr(s.t); err != nil {
			return err
		}
		peers = append(peers, p.name+"="+peerURL(p.name))
		s.members = append(s.members, p)
	}
	for _, p := range s.members {
		p.peers = strings.Join(peers, ",")
	}
	members := s.members
	s.t.Cleanup(func() {
		for _, p := range members {
			keepLog(s.t, p)
			err = errors.Join(err, p.kill())
		}
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil && !s.t.Failed() {
			s.t.Errorf("end etcd: %v", err)
		}
	})
	for _, p := range s.members {
		if err := p.spawn(s.scheme); err != nil {
			return err
		}
	}
	for _, p := range s.members {
		if err := p.await(context.WithoutCancel(s.t.Context())); err != nil {
			return err
		}
	}
	return nil
}

// need skips or fails a test that cannot have a server.
func need(t testing.TB) {
	t.Helper()
	const missing = "etcd is not installed: run scripts/deps.sh etcd"
	switch {
	case testing.Short():
		t.Skip("needs a real etcd: not run with -short")
	case Available():
	case os.Getenv("CI") != "":
		t.Fatal(missing)
	default:
		t.Skip("SKIPPED, NOTHING TESTED: " + missing)
	}
}

// keepLog shows the log of p if its test failed, and keeps it as an artifact.
func keepLog(t testing.TB, p *proc) {
	t.Helper()
	if !t.Failed() {
		return
	}
	t.Logf("log of etcd %s ends:\n%s", p.name, tail(p.logPath(), 20))
	data, err := os.ReadFile(p.logPath())
	if err == nil {
		err = os.WriteFile(filepath.Join(t.ArtifactDir(), filepath.Base(p.dir)+"-"+p.name+".log"), data, 0o600)
	}
	if err != nil {
		t.Logf("keep log of etcd: %v", err)
	}
}

// Addrs returns where the members take clients.
func (s *Server) Addrs() []string {
	var out []string
	for _, p := range s.members {
		out = append(out, p.addr)
	}
	return out
}

// PIDs are the processes of the members.
func (s *Server) PIDs() []int {
	var out []int
	for _, p := range s.members {
		out = append(out, p.run.process.Pid)
	}
	return out
}

// URL returns where they are, as a target has it.
func (s *Server) URL() string {
	if s.scheme == "https" {
		return "etcds://" + strings.Join(s.Addrs(), ",")
	}
	return "etcd://" + strings.Join(s.Addrs(), ",")
}

// Client returns a client without a user that ends with the test.
func (s *Server) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	return s.ClientWith(t, clientv3.Config{})
}

// ClientWith is [Server.Client] for a user, or with a certificate.
func (s *Server) ClientWith(t testing.TB, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	for _, addr := range s.Addrs() {
		cfg.Endpoints = append(cfg.Endpoints, s.scheme+"://"+addr)
	}
	cfg.DialTimeout, cfg.Logger = 30*time.Second, zap.NewNop()
	if s.scheme == "https" && cfg.TLS == nil {
		cfg.TLS = &tls.Config{InsecureSkipVerify: true}
	}
	c, err := clientv3.New(cfg)
	if err != nil {
		t.Fatalf("connect to etcd: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it says that its own context ended
	return c
}

// RootPassword is that of root after [Server.EnableAuth].
const RootPassword = "the-password-of-root"

// EnableAuth turns users on, and returns a client of root.
func (s *Server) EnableAuth(t testing.TB) *clientv3.Client {
	t.Helper()
	c := s.Client(t)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("turn authentication on: %v", err)
		}
	}
	must(c.UserAdd(t.Context(), "root", RootPassword))
	must(c.RoleAdd(t.Context(), "root"))
	must(c.UserGrantRole(t.Context(), "root", "root"))
	must(c.AuthEnable(t.Context()))
	return s.ClientWith(t, clientv3.Config{Username: "root", Password: RootPassword})
}

// Kill ends members as a crash would, all if none is named; they count from 0.
func (s *Server) Kill(members ...int) {
	s.t.Helper()
	for _, p := range s.chosen(members) {
		s.must("kill", p.kill())
	}
}

// Restart kills members, starts them again at the same address and with their data, and
// returns when they answer and know a leader; all if none is named.
func (s *Server) Restart(members ...int) {
	s.t.Helper()
	s.Kill(members...)
	for _, p := range s.chosen(members) {
		s.must("restart", p.spawn(s.scheme))
	}
	for _, p := range s.chosen(members) {
		s.must("restart", p.await(context.WithoutCancel(s.t.Context())))
	}
}

// Pause stops members (SIGSTOP): connections stay open, nothing answers.
func (s *Server) Pause(members ...int) {
	s.t.Helper()
	for _, p := range s.chosen(members) {
		s.must("pause", redisproc.Freeze(p.run.process))
	}
}

// Resume ends a [Server.Pause].
func (s *Server) Resume(members ...int) {
	s.t.Helper()
	for _, p := range s.chosen(members) {
		s.must("resume", signalContinue(p.run.process))
	}
}

func (s *Server) chosen(members []int) []*proc {
	if len(members) == 0 {
		return s.members
	}
	var out []*proc
	for _, i := range members {
		out = append(out, s.members[i])
	}
	return out
}

func (s *Server) must(verb string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s etcd: %v", verb, err)
	}
}
