package connect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// within is how long an event may take on a loaded machine.
const within = 20 * time.Second

// stage is a server that wants a client certificate of the authorities it knows,
// and the files of a client.
type stage struct {
	t             *testing.T
	dir           string
	srv           *testredis.Server
	admin         *redis.Client
	ca, cert, key string // of the client
	server        *testcert.CA
}

func newStage(t *testing.T, client *testcert.CA, pair testcert.Pair) *stage {
	t.Helper()
	return stageOn(t, testredis.Start(t, testredis.WithTLS(), testredis.WithConfig("tls-auth-clients yes")), client, pair)
}

// stageOn is newStage with a server that is there.
func stageOn(t *testing.T, srv *testredis.Server, client *testcert.CA, pair testcert.Pair) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), srv: srv, server: testcert.NewCA(t, "servers")}
	s.admin = s.srv.Client(t)
	if err := s.admin.Ping(t.Context()).Err(); err != nil { // before it knows us no more
		t.Fatal(err)
	}
	s.ca, s.cert, s.key = testcert.Files(t, s.dir, "client", s.server.PEM, pair)
	s.serve(client)
	return s
}

// serve has the server show a new certificate and trust clients of an authority.
func (s *stage) serve(clients *testcert.CA) {
	s.t.Helper()
	trusted := filepath.Join(s.dir, "trusted.pem")
	testcert.Put(s.t, trusted, clients.PEM)
	if err := s.admin.ConfigSet(s.t.Context(), "tls-ca-cert-file", trusted).Err(); err != nil {
		s.t.Fatal(err)
	}
	s.show(s.server.Issue(s.t, testcert.Leaf{Name: "redis"}))
}

// show has the server show another certificate to new connections.
func (s *stage) show(pair testcert.Pair) {
	s.t.Helper()
	cert, key := filepath.Join(s.dir, "server.pem"), filepath.Join(s.dir, "server.key")
	testcert.Put(s.t, cert, pair.Cert)
	testcert.Put(s.t, key, pair.Key)
	// Certificate and key are one change: half of it would be refused.
	if err := s.admin.Do(s.t.Context(), "config", "set", "tls-cert-file", cert, "tls-key-file", key).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) config() connect.Config {
	return connect.Config{URL: s.srv.URL(), CAFile: s.ca, CertFile: s.cert, KeyFile: s.key}
}

// dial says whether a new connection works.
func dial(t *testing.T, conn *connect.Conn, addr string) error {
	t.Helper()
	cn := conn.Dedicated(t.Context(), addr, "-test", nil)
	defer func() { _ = cn.Close() }()
	return cn.Ping(t.Context()).Err()
}

// TestCertificatesRotateWithoutRestart: what is connected stays connected, new
// connections use the new certificate and authority, and what cannot be used leaves
// the old ones in use.
// fault: 25
func TestCertificatesRotateWithoutRestart(t *testing.T) {
	t.Parallel()
	one, two := testcert.NewCA(t, "one"), testcert.NewCA(t, "two")
	s := newStage(t, one, one.Issue(t, testcert.Leaf{Name: "first"}))
	conn := open(t, s.config())
	lasting := conn.Dedicated(t.Context(), s.srv.Addr(), "-lasting", nil)
	t.Cleanup(func() { _ = lasting.Close() })
	if err := lasting.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("the first certificate: %v", err)
	}
	if end, ok := conn.ServerCertificateEnds(); !ok || time.Until(end) < 23*time.Hour {
		t.Errorf("the server's certificate ends %s, %v", end, ok)
	}
	renewed := conn.Renewed()

	// The server trusts the next authority alone, and has another certificate.
	s.serve(two)
	conn.Files()
	if err := dial(t, conn, s.srv.Addr()); err == nil || !strings.Contains(connect.Explain(err), "the server") {
		t.Errorf("a certificate that nobody trusts any more: %v", err)
	}
	if err := lasting.Ping(t.Context()).Err(); err != nil {
		t.Errorf("what was connected is cut: %v", err)
	}
	next := two.Issue(t, testcert.Leaf{Name: "second"})
	testcert.Put(t, s.cert, next.Cert)
	for _, f := range conn.Files() {
		if f.Key == "cert_file" && f.Refused == nil {
			t.Error("a certificate without its key is in use")
		}
	}
	testcert.Put(t, s.key, next.Key)
	for _, f := range conn.Files() {
		if f.Refused != nil {
			t.Errorf("%s: %v", f.Key, f.Refused)
		}
	}
	select {
	case <-renewed:
	default:
		t.Error("nobody is notified of the new certificate")
	}
	if err := dial(t, conn, s.srv.Addr()); err != nil {
		t.Errorf("the new certificate: %v", err)
	}
	if err := lasting.Ping(t.Context()).Err(); err != nil {
		t.Errorf("what was connected is cut by the change: %v", err)
	}

	for name, damage := range map[string]func(){
		"half of the key": func() { testcert.Put(t, s.key, next.Key[:40]) },
		"no certificate":  func() { _ = os.Remove(s.cert) },
		"no authority":    func() { testcert.Put(t, s.ca, nil) },
	} {
		damage()
		conn.Files()
		if err := dial(t, conn, s.srv.Addr()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWatchersConnectAgainBeforeTheirCertificateEnds: a connection that is meant to
// stay ends in order once there is a later certificate, and never without one.
func TestWatchersConnectAgainBeforeTheirCertificateEnds(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "one")
	s := newStage(t, ca, ca.Issue(t, testcert.Leaf{Name: "client"}))
	short := ca.Issue(t, testcert.Leaf{Name: "short", NotAfter: time.Now().Add(10 * time.Second)}) // now that the server runs
	testcert.Put(t, s.cert, short.Cert)
	testcert.Put(t, s.key, short.Key)
	conn := open(t, s.config())
	lasting := conn.Dedicated(t.Context(), s.srv.Addr(), "-lasting", nil)
	t.Cleanup(func() { _ = lasting.Close() })
	alone := connect.Config{URL: s.srv.URL(), CAFile: s.ca}
	_, alone.CertFile, alone.KeyFile = testcert.Files(t, s.dir, "alone", s.server.PEM, ca.Issue(t, testcert.Leaf{Name: "alone", NotAfter: time.Now().Add(5 * time.Second)}))
	other := open(t, alone).Dedicated(t.Context(), s.srv.Addr(), "-alone", nil)
	t.Cleanup(func() { _ = other.Close() })
	for _, cn := range []*redis.Client{lasting, other} {
		if err := cn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	next := ca.Issue(t, testcert.Leaf{Name: "long"})
	testcert.Put(t, s.cert, next.Cert)
	testcert.Put(t, s.key, next.Key)
	testredis.Eventually(t, within, func() bool { return lasting.Ping(t.Context()).Err() != nil }, "the connection stays although its certificate ends")
	if err := other.Ping(t.Context()).Err(); err != nil {
		t.Errorf("a connection without a later certificate is cut: %v", err)
	}
	if err := dial(t, conn, s.srv.Addr()); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

// TestServerNameAndVersion: the certificate is checked for the name that is
// configured, and no version below the least one is spoken.
func TestServerNameAndVersion(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "one")
	s := newStage(t, ca, ca.Issue(t, testcert.Leaf{Name: "client"}))
	cfg := s.config()
	cfg.ServerName = "localhost"
	if err := dial(t, open(t, cfg), s.srv.Addr()); err != nil {
		t.Errorf("a name that the certificate has: %v", err)
	}
	cfg.ServerName = "redis.example.org"
	if err := dial(t, open(t, cfg), s.srv.Addr()); err == nil || !strings.Contains(connect.Explain(err), "not for redis.example.org") {
		t.Errorf("a name that it has not: %v", err)
	}
	if err := s.admin.ConfigSet(t.Context(), "tls-protocols", "TLSv1.2").Err(); err != nil {
		t.Fatal(err)
	}
	cfg = s.config()
	if err := dial(t, open(t, cfg), s.srv.Addr()); err != nil {
		t.Errorf("TLS 1.2: %v", err)
	}
	cfg.MinVersion = "1.3"
	if err := dial(t, open(t, cfg), s.srv.Addr()); err == nil || !strings.Contains(connect.Explain(err), "tls_min_version") {
		t.Errorf("TLS 1.2 where 1.3 is the least: %v: %s", err, connect.Explain(err))
	}
	if err := s.admin.ConfigSet(t.Context(), "tls-protocols", "TLSv1.1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, open(t, s.config()), s.srv.Addr()); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	cfg.MinVersion = "1.1"
	if _, err := connect.Open(cfg); err == nil || !strings.Contains(err.Error(), `tls_min_version: got "1.1", write 1.2 or 1.3`) {
		t.Errorf("1.1 as the least: %v", err)
	}
}

// TestPasswordsRotateWithoutRestart: new connections log in with what the file
// holds by then; anyone who waits after a refusal is woken.
// fault: 46
func TestPasswordsRotateWithoutRestart(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on >one ~* &* +@all"))
	file := filepath.Join(t.TempDir(), "pw")
	testcert.Put(t, file, []byte("one\n"))
	conn := open(t, connect.Config{URL: srv.URL(), Username: "scanner", PasswordFile: file})
	who := func() string {
		t.Helper()
		name, err := conn.Universal().Do(t.Context(), "acl", "whoami").Text()
		if err != nil {
			return connect.Explain(err)
		}
		return name
	}
	if who() != "scanner" {
		t.Fatalf("logged in as %s", who())
	}
	admin := srv.Client(t)
	rotate := func(password string) {
		t.Helper()
		if err := admin.Do(t.Context(), "acl", "setuser", "scanner", "resetpass", ">"+password).Err(); err != nil {
			t.Fatal(err)
		}
		if err := admin.Do(t.Context(), "client", "kill", "user", "scanner").Err(); err != nil {
			t.Fatal(err)
		}
	}
	rotate("two")
	testredis.Eventually(t, within, func() bool { return strings.Contains(who(), "refused user or password") }, "the old password works")
	woken := conn.Renewed() // what Rest waits for; taken before the change
	testcert.Put(t, file, []byte("two\n"))
	testredis.Eventually(t, within, func() bool {
		conn.Files()
		select {
		case <-woken:
			return true
		default:
			return false
		}
	}, "who waits is not woken")
	if who() != "scanner" {
		t.Errorf("with the new password: %s", who())
	}
	// An emptied file is one that is being written.
	testcert.Put(t, file, nil)
	conn.Files()
	if err := admin.Do(t.Context(), "client", "kill", "user", "scanner").Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool { return who() == "scanner" }, "the last good password is not in use")
}

// TestSentinelPasswordsRotate: Sentinels that ask for a login are asked with the
// password of the file.
func TestSentinelPasswordsRotate(t *testing.T) {
	t.Parallel()
	set := testredis.StartSentinel(t)
	file := filepath.Join(t.TempDir(), "pw")
	testcert.Put(t, file, []byte("one\n"))
	secure := func(old, password string) {
		t.Helper()
		for _, addr := range set.Addrs() {
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, Password: old})
			if err := c.Do(t.Context(), "acl", "setuser", "default", "resetpass", ">"+password).Err(); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	secure("", "one")
	conn := open(t, connect.Config{URL: set.URL(), SentinelPasswordFile: file})
	if _, err := conn.Masters(t.Context()); err != nil {
		t.Fatalf("with the first password: %v", err)
	}
	if err := conn.Universal().Ping(t.Context()).Err(); err != nil {
		t.Errorf("the failover client: %v", err)
	}
	before := conn.Universal()
	testcert.Put(t, file, []byte("two\n"))
	secure("one", "two")
	conn.Files()
	if _, err := conn.Masters(t.Context()); err != nil {
		t.Errorf("with the second password: %v", err)
	}
	if conn.Universal() == before {
		t.Error("the failover client has the old password")
	}
	if err := conn.Universal().Ping(t.Context()).Err(); err != nil {
		t.Errorf("the new failover client: %v", err)
	}
	if err := before.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the old one is closed while somebody may use it: %v", err)
	}
}
