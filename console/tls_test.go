package console

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

// tlsBed is a console that asks clients for a certificate.
type tlsBed struct {
	t             *testing.T
	dir           string
	ca, cert, key string // of the server
	server        *Server
}

func newTLSBed(t *testing.T, ca *testcert.CA) *tlsBed {
	t.Helper()
	b := &tlsBed{t: t, dir: t.TempDir()}
	b.ca, b.cert, b.key = testcert.Files(t, b.dir, "server", ca.PEM, ca.Issue(t, testcert.Leaf{Name: "first"}))
	var err error
	b.server, err = NewServer(zaptest.NewLogger(t), Config{
		Listen: "127.0.0.1:0", UsersFile: filepath.Join(b.dir, "none.yaml"), TLSCertFile: b.cert, TLSKeyFile: b.key, TLSClientCAFile: b.ca,
	}, newWorld().deps())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

// get asks over a connection of its own and returns who answered.
func (b *tlsBed) get(conf *tls.Config) (server string, err error) {
	b.t.Helper()
	transport := &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get(b.server.URL() + "api/v1/targets")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.t.Errorf("status %d", resp.StatusCode)
	}
	return resp.TLS.PeerCertificates[0].Subject.CommonName, nil
}

func (b *tlsBed) client(ca *testcert.CA, name string) *credfile.Set {
	b.t.Helper()
	caFile, cert, key := testcert.Files(b.t, b.dir, name, ca.PEM, ca.Issue(b.t, testcert.Leaf{Name: name}))
	set, err := credfile.Open(credfile.Files{CA: caFile, Cert: cert, Key: key}, credfile.Keys{})
	if err != nil {
		b.t.Fatal(err)
	}
	return set
}

// Certificate and authorities of the console are replaced without a restart and
// without a reload; what cannot be used leaves the ones before in use, and a reload
// then says so. Nobody without a certificate gets in, nor with TLS 1.1.
func TestConsoleFollowsItsCertificates(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "one")
	b := newTLSBed(t, ca)
	known := b.client(ca, "ana")
	answers := func(want string) {
		t.Helper()
		if got, err := b.get(known.Client("127.0.0.1", 0)); err != nil || got != want {
			t.Errorf("%q answers, %v, want %q", got, err, want)
		}
	}
	answers("first")
	bare := known.Client("127.0.0.1", 0)
	bare.GetClientCertificate = nil
	if _, err := b.get(bare); err == nil {
		t.Error("a client without a certificate gets in")
	}
	stranger := b.client(testcert.NewCA(t, "two"), "eve").Client("127.0.0.1", 0)
	stranger.RootCAs = known.CA.Pool()
	if _, err := b.get(stranger); err == nil {
		t.Error("a client of another authority gets in")
	}
	old := known.Client("127.0.0.1", 0)
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	if _, err := b.get(old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}

	next := ca.Issue(t, testcert.Leaf{Name: "second"})
	testcert.Put(t, b.cert, next.Cert) // the key is still the old one
	if err := b.server.ReloadUsers(); err == nil || !strings.Contains(err.Error(), "tls_cert_file: load") {
		t.Errorf("a reload with a swapped certificate: %v", err)
	}
	answers("first")
	files := b.server.Files()
	if len(files) != 2 || files[0].Key != "tls_client_ca_file" || files[1].Key != "tls_cert_file" || files[1].Refused == nil {
		t.Errorf("files %+v", files)
	}
	testcert.Put(t, b.key, next.Key)
	if f := b.server.Files(); f[1].Refused != nil {
		t.Errorf("refused: %v", f[1].Refused)
	}
	answers("second")
	if err := os.Remove(b.ca); err != nil {
		t.Fatal(err)
	}
	if f := b.server.Files(); f[0].Refused == nil {
		t.Error("authorities that are gone are no problem")
	}
	answers("second")
	if err := b.server.ReloadUsers(); err == nil || !strings.Contains(err.Error(), "tls_client_ca_file") {
		t.Errorf("a reload without the authorities: %v", err)
	}
}

// The authority of clients is replaced in two steps, with both of them in between, and
// nobody is turned away but those of the old one at the end: also who resumes a session.
func TestConsoleFollowsTheAuthorityOfClients(t *testing.T) {
	t.Parallel()
	one, two := testcert.NewCA(t, "one"), testcert.NewCA(t, "two")
	b := newTLSBed(t, one)
	former, later := b.client(one, "ana"), b.client(two, "bo")
	sessions := tls.NewLRUClientSessionCache(4)
	ask := func(of *credfile.Set) error {
		t.Helper()
		conf := of.Client("127.0.0.1", 0)
		conf.RootCAs, conf.ClientSessionCache = former.CA.Pool(), sessions // the server's own certificate stays
		_, err := b.get(conf)
		return err
	}
	gets := func(anaIn, boIn bool) {
		t.Helper()
		if err := ask(former); (err == nil) != anaIn {
			t.Errorf("a client of the former authority: %v, want in: %t", err, anaIn)
		}
		if err := ask(later); (err == nil) != boIn {
			t.Errorf("a client of the later authority: %v, want in: %t", err, boIn)
		}
	}
	gets(true, false)
	both := append(append([]byte{}, one.PEM...), two.PEM...)
	testcert.Put(t, b.ca, both[:len(both)-20])
	if f := b.server.Files(); f[0].Refused == nil {
		t.Error("half a bundle is no problem")
	}
	gets(true, false)
	testcert.Put(t, b.ca, both)
	if f := b.server.Files(); f[0].Refused != nil {
		t.Error(f[0].Refused)
	}
	gets(true, true)
	testcert.Put(t, b.ca, two.PEM)
	if f := b.server.Files(); f[0].Refused != nil {
		t.Error(f[0].Refused)
	}
	gets(false, true)
}

func TestClientAuthoritiesNeedTLS(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "one")
	file := filepath.Join(t.TempDir(), "ca.pem")
	testcert.Put(t, file, ca.PEM)
	err := Config{UsersFile: "/nowhere/u", TLSClientCAFile: file}.Validate()
	if err == nil || !strings.Contains(err.Error(), "tls_client_ca_file: ") || !strings.Contains(err.Error(), "tls_cert_file and tls_key_file") {
		t.Errorf("got %v", err)
	}
}
