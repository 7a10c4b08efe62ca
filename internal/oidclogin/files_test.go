package oidclogin

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testoidc"
)

// look returns how a file stands.
func look(t *testing.T, p *Provider, key string) credfile.State {
	t.Helper()
	for _, f := range p.Files() {
		if f.Key == key {
			return f.State
		}
	}
	t.Fatalf("no %s in %+v", key, p.Files())
	return credfile.State{}
}

// TestClientSecretRotates: the next sign-in uses what the file has by then, and an
// empty one changes nothing.
func TestClientSecretRotates(t *testing.T) {
	t.Parallel()
	i := testoidc.Start(t)
	m := testcert.Mount(t, map[string]string{"secret": testoidc.Secret + "\n"})
	p := provider(t, i, func(c *signin.OIDCConfig) { c.ClientSecretFile = m.Path("secret") })
	come := func() error {
		t.Helper()
		_, err := arrive(t, i, p, nil)
		quiet(t, err)
		return err
	}
	if err := come(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "\nsecond line"} {
		m.Swap(t, map[string]string{"secret": text})
		if s := look(t, p, "oidc.client_secret_file"); s.Refused == nil || s.Generation != 1 {
			t.Errorf("%q: %+v", text, s)
		}
		if err := come(); err != nil {
			t.Errorf("%q: the one before is not in use: %v", text, err)
		}
	}
	m.Swap(t, map[string]string{"secret": "of another client"})
	if s := look(t, p, "oidc.client_secret_file"); s.Refused != nil || s.Generation != 2 {
		t.Errorf("%+v", s)
	}
	if err := come(); !errors.Is(err, locksteward.ErrInvalid) || strings.Contains(err.Error(), "another client") {
		t.Errorf("with another secret: %v", err)
	}
	m.Swap(t, map[string]string{"secret": testoidc.Secret})
	look(t, p, "oidc.client_secret_file")
	if err := come(); err != nil {
		t.Errorf("with the right one: %v", err)
	}
}

// TestAuthorityOfTheProviderRotates: the provider's certificate comes from another
// authority, and people get in again when the file has it.
func TestAuthorityOfTheProviderRotates(t *testing.T) {
	t.Parallel()
	one, two := testcert.NewCA(t, "one"), testcert.NewCA(t, "two")
	var cert atomic.Pointer[tls.Certificate]
	show := func(ca *testcert.CA) {
		p := ca.Issue(t, testcert.Leaf{Name: "provider"})
		c, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		cert.Store(&c)
	}
	show(one)
	i := testoidc.Start(t, func(srv *httptest.Server) {
		srv.EnableHTTP2 = true
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*cert.Load()}, NextProtos: []string{"h2", "http/1.1"}}, nil
		}}
	})
	path := filepath.Join(t.TempDir(), "ca.pem")
	testcert.Put(t, path, one.PEM)
	p := provider(t, i, func(c *signin.OIDCConfig) { c.CAFile = path })
	if _, err := arrive(t, i, p, nil); err != nil {
		t.Fatal(err)
	}
	show(two)
	if _, err := arrive(t, i, p, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that is not trusted: %v", err)
	}
	testcert.Put(t, path, two.PEM[:len(two.PEM)-30])
	if s := look(t, p, "oidc.ca_file"); s.Refused == nil || s.Generation != 1 {
		t.Errorf("half of it: %+v", s)
	}
	testcert.Put(t, path, two.PEM)
	if s := look(t, p, "oidc.ca_file"); s.Refused != nil || s.Generation != 2 || s.Expires.IsZero() {
		t.Errorf("%+v", s)
	}
	if _, err := arrive(t, i, p, nil); err != nil {
		t.Errorf("with the new authority: %v", err)
	}
}
