package store_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// terminator speaks TLS in front of a PostgreSQL that listens on a socket alone.
type terminator struct {
	t        *testing.T
	listener net.Listener
	socket   string
	conf     *tls.Config

	mu      sync.Mutex
	clients []string // the names in their certificates, in turn
	open    map[net.Conn]bool
	wg      sync.WaitGroup
}

func newTerminator(t *testing.T, socket string, set *credfile.Set) *terminator {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &terminator{t: t, listener: l, socket: socket, conf: set.Server(), open: map[net.Conn]bool{}}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// cut ends all connections.
func (p *terminator) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *terminator) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
}

func (p *terminator) lastClient() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.clients) == 0 {
		return ""
	}
	return p.clients[len(p.clients)-1]
}

func (p *terminator) serve(raw net.Conn) {
	defer raw.Close()
	p.keep(raw)
	// Message SSLRequest of the protocol: length 8, code 80877103.
	var head [8]byte
	if _, err := io.ReadFull(raw, head[:]); err != nil || binary.BigEndian.Uint32(head[4:]) != 80877103 {
		return
	}
	if _, err := raw.Write([]byte("S")); err != nil {
		return
	}
	over := tls.Server(raw, p.conf)
	if over.HandshakeContext(context.Background()) != nil {
		return
	}
	if certs := over.ConnectionState().PeerCertificates; len(certs) > 0 {
		p.mu.Lock()
		p.clients = append(p.clients, certs[0].Subject.CommonName)
		p.mu.Unlock()
	}
	back, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Errorf("dial PostgreSQL: %v", err)
		return
	}
	defer back.Close()
	p.keep(back)
	p.wg.Go(func() { _, _ = io.Copy(back, over); _ = back.Close() })
	_, _ = io.Copy(over, back)
}

// socketOf returns the socket and the database of a DSN of testpg.
func socketOf(t *testing.T, dsn string) (socket, database string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cfg.Host, fmt.Sprintf(".s.PGSQL.%d", cfg.Port)), cfg.Database
}

// TestPostgresCertificatesRotate: the store speaks mutual TLS; what is replaced
// counts for the next connection, and what cannot be used does not.
func TestPostgresCertificatesRotate(t *testing.T) {
	t.Parallel()
	socket, database := socketOf(t, testpg.Database(t))
	dir := t.TempDir()
	one, two := testcert.NewCA(t, "one"), testcert.NewCA(t, "two")
	servers := testcert.NewCA(t, "servers")
	ca, cert, key := testcert.Files(t, dir, "server", one.PEM, servers.Issue(t, testcert.Leaf{Name: "postgres"}))
	set, err := credfile.Open(credfile.Files{CA: ca, Cert: cert, Key: key}, credfile.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	front := newTerminator(t, socket, set)
	root, clientCert, clientKey := testcert.Files(t, dir, "client", servers.PEM, one.Issue(t, testcert.Leaf{Name: "first"}))
	dsn := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: front.listener.Addr().String(), Path: "/" + database, RawQuery: url.Values{
		"sslmode": {"verify-full"}, "sslrootcert": {root}, "sslcert": {clientCert}, "sslkey": {clientKey},
	}.Encode()}
	s, err := store.OpenConfig(t.Context(), store.Config{DSN: dsn.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	works := func() error { return s.SaveSetting(t.Context(), "probe", time.Now().String()) }
	// reconnected has all connections made anew and says what came of it.
	reconnected := func() error {
		front.cut()
		var err error
		testredis.Eventually(t, 30*time.Second, func() bool {
			if err = works(); err != nil {
				away, _ := errors.AsType[*store.Error](err)
				return away == nil
			}
			return true
		}, "the store does not come back")
		return err
	}
	if err := works(); err != nil || front.lastClient() != "first" {
		t.Fatalf("%v, shown by %q", err, front.lastClient())
	}
	next := two.Issue(t, testcert.Leaf{Name: "second"})
	testcert.Put(t, clientCert, next.Cert) // without its key
	if err := reconnected(); err != nil || front.lastClient() != "first" {
		t.Errorf("half of a change: %v, shown by %q", err, front.lastClient())
	}
	if f := s.Files(); len(f) != 2 || f[1].Key != "sslcert" || f[1].Refused == nil {
		t.Errorf("files %+v", f)
	}
	testcert.Put(t, clientKey, next.Key)
	testcert.Put(t, ca, append(append([]byte{}, one.PEM...), two.PEM...))
	// A connection that was begun before the change may come after the cut.
	testredis.Eventually(t, 30*time.Second, func() bool { return reconnected() == nil && front.lastClient() == "second" }, "the new certificate is not shown")
	old := two.Issue(t, testcert.Leaf{Name: "over", NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	testcert.Put(t, clientCert, old.Cert)
	testcert.Put(t, clientKey, old.Key)
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := reconnected(); err != nil || front.lastClient() != "second" {
		t.Errorf("an expired certificate and no authority: %v, shown by %q", err, front.lastClient())
	}
}

// TestPostgresPasswordsRotate: a password that is replaced in its file is used for
// the next connection.
func TestPostgresPasswordsRotate(t *testing.T) {
	t.Parallel()
	srv := testpg.Start(t)
	admin, err := pgx.Connect(t.Context(), srv.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var hba string
	if err := admin.QueryRow(t.Context(), "SHOW hba_file").Scan(&hba); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("local all steward scram-sha-256\n"), raw...), 0o600); err != nil {
		t.Fatal(err)
	}
	exec("CREATE ROLE steward LOGIN SUPERUSER PASSWORD 'one'")
	exec("SELECT pg_reload_conf()")
	file := filepath.Join(t.TempDir(), "pw")
	testcert.Put(t, file, []byte("one\n"))
	cfg := store.DefaultConfig()
	cfg.DSN, cfg.PasswordFile = strings.Replace(srv.DSN(), "user=postgres", "user=steward", 1), file
	s, err := store.OpenConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	works := func() error { return s.SaveSetting(t.Context(), "probe", time.Now().String()) }
	testredis.Eventually(t, 30*time.Second, func() bool { return works() == nil }, "the first password")
	exec("ALTER ROLE steward PASSWORD 'two'")
	testcert.Put(t, file, []byte("two\n"))
	exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'steward'")
	testredis.Eventually(t, 30*time.Second, func() bool { return works() == nil }, "the second password is not used")
	testcert.Put(t, file, nil)
	exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'steward'")
	testredis.Eventually(t, 30*time.Second, func() bool { return works() == nil }, "an emptied file is used")
	if f := s.Files(); len(f) != 1 || f[0].Key != "password_file" || f[0].Refused == nil {
		t.Errorf("files %+v", f)
	}
}
