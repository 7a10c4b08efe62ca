package exporter_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

// mutual is a metrics listener that wants a certificate of anyone who scrapes.
type mutual struct {
	t             *testing.T
	addr          string
	ca, cert, key string // of the server, and the authority of clients
}

func newMutual(t *testing.T, clients, own *testcert.CA) *mutual {
	t.Helper()
	dir := t.TempDir()
	m := &mutual{t: t}
	m.ca, m.cert, m.key = testcert.Files(t, dir, "server", clients.PEM, own.Issue(t, testcert.Leaf{Name: "first"}))
	file := filepath.Join(dir, "web.yml")
	// Paths are taken from where the file is.
	writeFile(t, file, "tls_server_config: {cert_file: server.pem, key_file: server.key, client_auth_type: RequireAndVerifyClientCert, client_ca_file: server-ca.pem}\n")
	m.addr = serve(t, exporter.Config{WebConfigFile: file}, full(t), readyNow)
	return m
}

// scrape asks over a connection of its own, as a client with a certificate of ca, or
// with none, and returns who answered.
func (m *mutual) scrape(trust, ca *testcert.CA, edits ...func(*tls.Config)) (string, error) {
	m.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust.PEM)
	config := &tls.Config{RootCAs: roots}
	if ca != nil {
		p := ca.Issue(m.t, testcert.Leaf{Name: "prometheus"})
		cert, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			m.t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	for _, edit := range edits {
		edit(config)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get("https://" + m.addr + "/metrics")
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "locksteward_build_info") {
		m.t.Errorf("status %d: %.100s", resp.StatusCode, body)
	}
	return resp.TLS.PeerCertificates[0].Subject.CommonName, nil
}

// TestMetricsBehindClientCertificates: who has a certificate of the authority may
// scrape, and nobody else.
func TestMetricsBehindClientCertificates(t *testing.T) {
	t.Parallel()
	clients, own, strange := testcert.NewCA(t, "clients"), testcert.NewCA(t, "own"), testcert.NewCA(t, "strange")
	m := newMutual(t, clients, own)
	if got, err := m.scrape(own, clients); err != nil || got != "first" {
		t.Errorf("with a certificate: %q, %v", got, err)
	}
	if _, err := m.scrape(own, nil); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without one: %v", err)
	}
	if _, err := m.scrape(own, strange); err == nil {
		t.Error("one of another authority gets in")
	}
	if _, err := m.scrape(own, own); err == nil {
		t.Error("one of the server's own authority gets in")
	}
	if _, err := m.scrape(own, clients, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 }); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	if resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + m.addr + "/metrics"); err == nil {
		if resp.Body.Close(); resp.StatusCode == http.StatusOK {
			t.Error("who speaks no TLS gets in")
		}
	}
}

// TestMetricsFollowTheirCertificates: the certificate and the authority of clients are
// replaced without a restart or a reload. While a file cannot be used scrapes fail,
// as docs/tls.md says, and go on by themselves.
func TestMetricsFollowTheirCertificates(t *testing.T) {
	t.Parallel()
	one, two, own := testcert.NewCA(t, "one"), testcert.NewCA(t, "two"), testcert.NewCA(t, "own")
	m := newMutual(t, one, own)
	answers := func(who string, ca *testcert.CA) {
		t.Helper()
		if got, err := m.scrape(own, ca); err != nil || got != who {
			t.Errorf("%q answers, %v, want %q", got, err, who)
		}
	}
	fails := func(why string, ca *testcert.CA) {
		t.Helper()
		if _, err := m.scrape(own, ca); err == nil {
			t.Error(why)
		}
	}
	answers("first", one)
	next := own.Issue(t, testcert.Leaf{Name: "second"})
	testcert.Put(t, m.cert, next.Cert)
	fails("a certificate without its key is shown", one)
	testcert.Put(t, m.key, next.Key)
	answers("second", one)

	fails("an authority that is not there yet counts", two)
	testcert.Put(t, m.ca, append(append([]byte{}, one.PEM...), two.PEM...))
	answers("second", one)
	answers("second", two)
	testcert.Put(t, m.ca, two.PEM)
	answers("second", two)
	fails("a client of the former authority gets in", one)
	if err := os.Remove(m.ca); err != nil {
		t.Fatal(err)
	}
	fails("without an authority everybody gets in", two)
	testcert.Put(t, m.ca, two.PEM)
	answers("second", two)
}
