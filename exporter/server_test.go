package exporter_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"golang.org/x/crypto/bcrypt"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func readyNow() exporter.Readiness { return exporter.Readiness{} }

// serve runs a server until the test ends and returns its address.
func serve(t testing.TB, cfg exporter.Config, e *exporter.Exporter, ready func() exporter.Readiness) string {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	s, err := exporter.NewServer(zaptest.NewLogger(t), cfg, e, nil, ready)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s.Addr().String()
}

// newClient returns a client that leaves no connection behind.
func newClient(t testing.TB, roots *x509.CertPool) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

// ask sends a request and returns the response, its body read.
func ask(t testing.TB, c *http.Client, method, url string, edit ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(req)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func accept(mediaType string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", mediaType) }
}

func TestServerPages(t *testing.T) {
	t.Parallel()
	addr := "http://" + serve(t, exporter.Config{}, full(t), readyNow)
	c := newClient(t, nil)
	for _, tc := range []struct {
		method, path string
		status       int
		contains     string
	}{
		{"GET", "/metrics", 200, `locksteward_build_info{goversion="go`},
		{"GET", "/metrics", 200, `promhttp_metric_handler_errors_total`},
		{"GET", "/metrics", 200, `go_goroutines`},
		{"HEAD", "/metrics", 200, ""},
		{"GET", "/-/healthy", 200, "ok\n"},
		{"GET", "/-/ready", 200, "ready\n"},
		{"GET", "/", 200, `href="/metrics"`},
		{"GET", "/", 200, "1.2.3"},
		{"POST", "/metrics", 405, ""},
		{"POST", "/-/healthy", 405, ""},
		{"DELETE", "/-/ready", 405, ""},
		{"POST", "/", 405, ""},
		{"POST", "/-/reload", 404, ""}, // belongs to the other listener
		{"GET", "/debug/pprof/", 404, ""},
		{"GET", "/nothing", 404, ""},
	} {
		res, body := ask(t, c, tc.method, addr+tc.path)
		if res.StatusCode != tc.status {
			t.Errorf("%s %s = %d, want %d", tc.method, tc.path, res.StatusCode, tc.status)
		}
		if !strings.Contains(body, tc.contains) {
			t.Errorf("%s %s does not contain %q:\n%s", tc.method, tc.path, tc.contains, body)
		}
		if tc.status == 405 && !strings.Contains(res.Header.Get("Allow"), "GET") {
			t.Errorf("%s %s says Allow: %q", tc.method, tc.path, res.Header.Get("Allow"))
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	url := "http://" + serve(t, exporter.Config{}, full(t), readyNow) + "/metrics"
	c := newClient(t, nil)
	res, body := ask(t, c, "GET", url, accept("application/openmetrics-text; version=1.0.0"))
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/openmetrics-text") || !strings.HasSuffix(body, "# EOF\n") {
		t.Errorf("no OpenMetrics: %s", res.Header.Get("Content-Type"))
	}
	res, _ = ask(t, c, "GET", url, accept("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"))
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/vnd.google.protobuf") {
		t.Errorf("no protobuf, so no native histograms: %s", res.Header.Get("Content-Type"))
	}
}

func TestReadinessSaysWhy(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	addr := "http://" + serve(t, exporter.Config{}, newExporter(t, exporter.Config{}), func() exporter.Readiness {
		if ready.Load() {
			return exporter.Readiness{Notes: []string{"target \"b\": nobody's", "target \"c\": nobody's"}}
		}
		return exporter.Readiness{Waits: errors.Join(errors.New("target \"a\": its first sweep has not ended"), errors.New("configuration: not loaded"))}
	})
	c := newClient(t, nil)
	res, body := ask(t, c, "GET", addr+"/-/ready")
	if res.StatusCode != 503 || body != "not ready:\ntarget \"a\": its first sweep has not ended\nconfiguration: not loaded\n" {
		t.Errorf("not ready: %d %q", res.StatusCode, body)
	}
	if res, _ := ask(t, c, "GET", addr+"/-/healthy"); res.StatusCode != 200 {
		t.Errorf("healthy though not ready: %d", res.StatusCode)
	}
	ready.Store(true)
	if res, body := ask(t, c, "GET", addr+"/-/ready"); res.StatusCode != 200 || body != "ready\ntarget \"b\": nobody's\ntarget \"c\": nobody's\n" {
		t.Errorf("ready: %d %q", res.StatusCode, body)
	}
}

func TestTLSAndBasicAuth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := writeCertificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("opensesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "web.yml")
	writeFile(t, file, "tls_server_config: {cert_file: server.crt, key_file: server.key}\nbasic_auth_users:\n  prometheus: "+string(hash)+"\n")
	addr := serve(t, exporter.Config{WebConfigFile: file}, full(t), readyNow)
	c := newClient(t, roots)

	login := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	for _, path := range []string{"/metrics", "/", "/-/ready"} {
		if res, body := ask(t, c, "GET", "https://"+addr+path); res.StatusCode != 401 || strings.Contains(body, "locksteward_") {
			t.Errorf("%s without login = %d", path, res.StatusCode)
		}
	}
	if res, _ := ask(t, c, "GET", "https://"+addr+"/metrics", login("prometheus", "wrong")); res.StatusCode != 401 {
		t.Errorf("wrong password = %d", res.StatusCode)
	}
	res, body := ask(t, c, "GET", "https://"+addr+"/metrics", login("prometheus", "opensesame"))
	if res.StatusCode != 200 || !strings.Contains(body, "locksteward_build_info") {
		t.Errorf("with login = %d", res.StatusCode)
	}
	if res.TLS == nil || res.TLS.Version < tls.VersionTLS12 {
		t.Error("no TLS 1.2 or later")
	}
	if res, _ := ask(t, c, "GET", "http://"+addr+"/metrics"); res.StatusCode == 200 {
		t.Error("plain HTTP on a TLS listener is answered")
	}
}

func TestServerRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{})
	log := zaptest.NewLogger(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	if _, err := exporter.NewServer(log, exporter.Config{Listen: taken.Addr().String()}, e, nil, readyNow); err == nil || !strings.Contains(err.Error(), "metrics.listen") {
		t.Errorf("taken port: %v", err)
	}
	file := filepath.Join(t.TempDir(), "web.yml")
	writeFile(t, file, "no_such_key: 1\n")
	if _, err := exporter.NewServer(log, exporter.Config{Listen: "127.0.0.1:0", WebConfigFile: file}, e, nil, readyNow); err == nil || !strings.Contains(err.Error(), "web_config_file") {
		t.Errorf("broken web configuration: %v", err)
	}
	// The file breaks between NewServer and Run: an error, not a plain server.
	writeFile(t, file, "http_server_config: {http2: true}\n")
	s, err := exporter.NewServer(log, exporter.Config{Listen: "127.0.0.1:0", WebConfigFile: file}, e, nil, readyNow)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "no_such_key: 1\n")
	if err := s.Run(t.Context()); err == nil {
		t.Error("Run served with a broken web configuration")
	}
	if c, err := net.DialTimeout("tcp", s.Addr().String(), time.Second); err == nil {
		_ = c.Close()
		t.Error("the listener is still open after Run failed")
	}
}

func TestServerStops(t *testing.T) {
	t.Parallel()
	t.Run("before it was run", func(t *testing.T) {
		t.Parallel()
		s, err := exporter.NewServer(zaptest.NewLogger(t), exporter.Config{Listen: "127.0.0.1:0"}, newExporter(t, exporter.Config{}), nil, readyNow)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("Close twice: %v", err)
		}
	})
	t.Run("with a context that is done already", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s, err := exporter.NewServer(zaptest.NewLogger(t), exporter.Config{Listen: "127.0.0.1:0"}, newExporter(t, exporter.Config{}), nil, readyNow)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Run("with a client that never asks", func(t *testing.T) {
		t.Parallel()
		var silent net.Conn
		t.Cleanup(func() { _ = silent.Close() }) // after the server has stopped
		addr := serve(t, exporter.Config{}, newExporter(t, exporter.Config{}), readyNow)
		var err error
		if silent, err = net.Dial("tcp", addr); err != nil {
			t.Fatal(err)
		}
		// The server has accepted it once it answers a later one.
		testredis.Eventually(t, 5*time.Second, func() bool {
			res, _ := ask(t, newClient(t, nil), "GET", "http://"+addr+"/-/healthy")
			return res.StatusCode == 200
		}, "server answers")
	}) // serve's cleanup fails if Run does not return nil
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	if err := exporter.DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	if err := (exporter.Config{}).Validate(); err != nil {
		t.Errorf("the zero value is refused: %v", err)
	}
	err := exporter.Config{Listen: "10121", TopLocks: 101, WebConfigFile: "/no/such/file"}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, text := range []string{
		`listen: got "10121": no host:port; write host:port`,
		`top_locks: got 101, write a number from 0 to 100: `,
		`web_config_file: got "/no/such/file": `,
	} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("problem %q is not reported:\n%v", text, err)
		}
	}
	for _, port := range []string{":x", ":65536", ":-1", "h:"} {
		if err := (exporter.Config{Listen: port}).Validate(); err == nil {
			t.Errorf("listen %q is accepted", port)
		}
	}
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeCertificate writes server.crt and server.key for 127.0.0.1 and returns
// what trusts them.
func writeCertificate(t testing.TB, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pemCert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	writeFile(t, filepath.Join(dir, "server.crt"), string(pemCert))
	writeFile(t, filepath.Join(dir, "server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pemCert)
	return roots
}

// The page of a browser whose name was made to lead to 127.0.0.1 reads no metrics.
func TestLoopbackListenerAnswersForItsHosts(t *testing.T) {
	t.Parallel()
	e := newExporter(t, exporter.Config{})
	client := newClient(t, nil)
	status := func(address, host string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode
	}
	plain := serve(t, exporter.Config{}, e, readyNow)
	allowed := serve(t, exporter.Config{AllowedHosts: []string{"Metrics.example"}}, e, readyNow)
	for host, want := range map[string][2]int{
		"localhost": {200, 200}, "127.0.0.1:10121": {200, 200}, "[::1]:1": {200, 200}, "a.localhost": {200, 200},
		"metrics.example": {421, 200}, "METRICS.EXAMPLE.:9": {421, 200},
		"evil.example": {421, 421}, "127.0.0.1.evil.example": {421, 421}, "10.0.0.1": {421, 421},
	} {
		if got := [2]int{status(plain, host), status(allowed, host)}; got != want {
			t.Errorf("Host %s: %v without and with an allowed host, want %v", host, got, want)
		}
	}
	if err := (exporter.Config{AllowedHosts: []string{"http://a", "a:1"}}).Validate(); err == nil || strings.Count(err.Error(), "allowed_hosts[") != 2 {
		t.Errorf("got %v", err)
	}
}
