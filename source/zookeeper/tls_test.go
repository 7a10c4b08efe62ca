package zksource_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testzk"
	"github.com/locksteward/locksteward/source"
	zksource "github.com/locksteward/locksteward/source/zookeeper"
)

// Locks are read and released with TLS: the server's certificate is checked, ours is shown, and what
// is wrong with one of them is said.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testcert.NewCA(t, "ensemble")
	server := testzk.StartTLS(t, ca, ca.Issue(t, testcert.Leaf{Name: "zk1", Hosts: []string{"127.0.0.1"}}))
	own := ca.Issue(t, testcert.Leaf{Name: "locksteward"})
	pair, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	good := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	change := func(f func(*tls.Config)) *tls.Config {
		out := good.Clone()
		f(out)
		return out
	}

	app := server.Client(t, soon)
	create(t, app, "", "/locks/orders/_c_"+uuid()+"-lock-", "10.1.2.3", zk.FlagEphemeralSequential)
	login := source.Login{URL: "zookeeper+tls://" + server.SecureAddr(), TLS: good}
	digest := locksteward.NewDigestKey()
	src := open(t, login, zksource.Options{Digest: digest})
	s := scan(t, src, "/locks/*")
	sweep, err := s.Sweep(t.Context())
	if err != nil || !sweep.Complete() || len(sweep.Locks) != 1 || sweep.Locks[0].Holder.Host != "10.1.2.3" {
		t.Fatalf("seen %+v, %v", sweep, err)
	}
	for _, c := range src.Check(t.Context()) {
		if c.Status != source.StatusOK {
			t.Errorf("check %+v", c)
		}
	}
	out, err := openReleaser(t, login, digest).Release(t.Context(), request(sweep.Locks[0]))
	if err != nil || out.State != locksteward.RequestReleased {
		t.Errorf("release: %+v, %v", out, err)
	}

	for name, test := range map[string]struct {
		url  string
		cfg  *tls.Config
		want string
	}{
		"another authority":     {login.URL, change(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), "the server's certificate is not trusted: "},
		"another name":          {login.URL, change(func(c *tls.Config) { c.ServerName = "zk2.example" }), "the server's certificate is not trusted: "},
		"without a certificate": {login.URL, change(func(c *tls.Config) { c.Certificates = nil }), "check cert_file and key_file"},
		"the port without TLS":  {"zookeeper+tls://" + server.Addr(), good, "the port must be the server's secureClientPort"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := open(t, source.Login{URL: test.url, TLS: test.cfg}, zksource.Options{})
			if err := src.Ping(t.Context()); err == nil || !strings.Contains(src.Explain(err), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if _, err := zksource.Open(source.Login{URL: "zookeeper://" + server.Addr(), TLS: good}, zksource.Options{}); err == nil || !strings.Contains(err.Error(), "zookeeper+tls://") {
		t.Errorf("TLS settings without TLS: %v", err)
	}
}
