package console

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward/internal/users"
)

// keyPair writes a self-signed certificate for 127.0.0.1.
func keyPair(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(certPEM)
	return write(t, "cert.pem", string(certPEM)), write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))), pool
}

func TestRunServesAndStops(t *testing.T) {
	t.Parallel()
	certFile, keyFile, pool := keyPair(t)
	for name, cfg := range map[string]Config{
		"plain": {}, "tls": {TLSCertFile: certFile, TLSKeyFile: keyFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Listen, cfg.UsersFile = "127.0.0.1:0", filepath.Join(t.TempDir(), "none.yaml")
			s, err := NewServer(zaptest.NewLogger(t), cfg, newWorld().deps())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
			client := &http.Client{Transport: transport}
			resp, err := client.Get(s.URL() + "api/v1/locks")
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "lock:order:42") || strings.HasPrefix(s.URL(), "https") != (name == "tls") {
				t.Errorf("%s: status %d: %s", s.URL(), resp.StatusCode, body)
			}
			transport.CloseIdleConnections()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if c, err := net.Dial("tcp", s.Addr()); err == nil {
				_ = c.Close()
				t.Error("it still listens")
			}
			if err := s.Close(); err != nil {
				t.Errorf("close after run: %v", err)
			}
		})
	}
}

// A request that was begun is answered although the server stops.
func TestStopLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.gate = make(chan struct{})
	file := filepath.Join(t.TempDir(), "users.yaml")
	token, err := users.Add(file, "all", users.Roles())
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(zaptest.NewLogger(t), Config{Listen: "127.0.0.1:0", UsersFile: file}, w.deps())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	status := make(chan int, 1)
	go func() {
		req, _ := http.NewRequest("POST", s.URL()+"api/v1/requests/r1/approve", strings.NewReader(`{"reason":"seen","evidence_hash":"e"}`))
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
		req.Header.Set("Content-Type", "application/json")
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.actors) == 1 })
	cancel()
	eventually(t, func() bool {
		c, err := net.Dial("tcp", s.Addr())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(w.gate)
	if got := <-status; got != http.StatusOK {
		t.Errorf("status %d", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestConfigRefusals(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.yaml")
	file := filepath.Join(t.TempDir(), "users.yaml")
	if _, err := users.Add(file, "ann", []users.Role{users.RoleViewer}); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, _ := keyPair(t)
	for name, c := range map[string]struct {
		cfg  Config
		want []string // nothing: valid
	}{
		"default":         {Config{UsersFile: none}, nil},
		"localhost":       {Config{Listen: "localhost:1", UsersFile: none}, nil},
		"ipv6 loopback":   {Config{Listen: "[::1]:1", UsersFile: none}, nil},
		"open with users": {Config{Listen: ":10122", UsersFile: file}, nil},
		"tls":             {Config{UsersFile: none, TLSCertFile: certFile, TLSKeyFile: keyFile}, nil},
		"open":            {Config{Listen: ":10122", UsersFile: none}, []string{"listen:", "locksteward users add"}},
		"any address":     {Config{Listen: "0.0.0.0:10122", UsersFile: none}, []string{"is not loopback"}},
		"mapped any":      {Config{Listen: "[::ffff:10.0.0.1]:1", UsersFile: none}, []string{"is not loopback"}},
		"name":            {Config{Listen: "console.internal:1", UsersFile: none}, []string{"is not loopback"}},
		"no port":         {Config{Listen: "127.0.0.1", UsersFile: none}, []string{`listen: must be host:port, like 127.0.0.1:10122, got "127.0.0.1"`}},
		"bad port":        {Config{Listen: "127.0.0.1:99999", UsersFile: none}, []string{"listen: must be host:port"}},
		"all at once":     {Config{Listen: "x", UsersFile: write(t, "u.yaml", "users: 7"), TLSCertFile: "c"}, []string{"listen:", "users_file:", "tls_key_file:"}},
		"key alone":       {Config{UsersFile: none, TLSKeyFile: keyFile}, []string{"tls_cert_file: is missing"}},
		"no such files":   {Config{UsersFile: none, TLSCertFile: "/nowhere/c", TLSKeyFile: "/nowhere/k"}, []string{"tls_cert_file: read"}},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (len(c.want) == 0) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in %v", name, want, err)
			}
		}
	}
	if _, err := NewServer(zaptest.NewLogger(t), Config{Listen: "0.0.0.0:0", UsersFile: none}, newWorld().deps()); err == nil {
		t.Error("it listens everywhere without users")
	}
	if _, err := NewServer(zaptest.NewLogger(t), Config{UsersFile: none}, Deps{}); err == nil {
		t.Error("it starts without dependencies")
	}
}

func TestAddressInUseIsAnErrorOfTheStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = NewServer(zaptest.NewLogger(t), Config{Listen: l.Addr().String(), UsersFile: "/nowhere/users.yaml"}, newWorld().deps())
	if err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("got %v", err)
	}
}
