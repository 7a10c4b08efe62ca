package sqlsource_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testmariadb"
	"github.com/locksteward/locksteward/source"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// A login with TLS checks the server's certificate, and shows its own where the user needs one. It never
// falls back to a connection that is not encrypted.
func TestTLSOfMariaDB(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: needs an address of its own in 127.0.0.0/8")
	}
	dir, err := os.MkdirTemp("", "locksteward-tls-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ca := testcert.NewCA(t, "databases")
	caFile, certFile, keyFile := testcert.Files(t, dir, "server", ca.PEM, ca.Issue(t, testcert.Leaf{Name: "server"}))
	for _, path := range []string{caFile, certFile, keyFile} { // the server runs as another user
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.79.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	listens := []string{"bind-address=" + addr, "port=3306"}
	server := testmariadb.Start(t, append(listens, "ssl-ca="+caFile, "ssl-cert="+certFile, "ssl-key="+keyFile)...)
	must(t, openMySQL(t, server.DSN()), "CREATE USER app IDENTIFIED BY 'secret' REQUIRE SSL; GRANT SELECT ON test.* TO app; CREATE USER mutual IDENTIFIED BY 'secret' REQUIRE X509; GRANT SELECT ON test.* TO mutual")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	own := ca.Issue(t, testcert.Leaf{Name: "client"})
	pair, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	good := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	mutual := good.Clone()
	mutual.Certificates = []tls.Certificate{pair}
	ping := func(user string, cfg *tls.Config) error {
		t.Helper()
		password := func() (locksteward.Secret, error) { return "secret", nil }
		src, err := sqlsource.Open(source.Login{URL: "mysql://" + addr + ":3306/test", Username: user, Password: password, TLS: cfg}, sqlsource.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = src.Close() }()
		if err := src.Ping(t.Context()); err != nil {
			return fmt.Errorf("%s", src.Explain(err))
		}
		return nil
	}
	for name, test := range map[string]struct {
		user string
		cfg  *tls.Config
		want string
	}{
		"trusted":               {"app", good, ""},
		"with a certificate":    {"mutual", mutual, ""},
		"without a certificate": {"mutual", good, "refused user or password"},
		"not encrypted":         {"app", nil, "refused user or password"},
		"another authority":     {"app", &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}, "not trusted"},
		"another name":          {"app", &tls.Config{RootCAs: roots, ServerName: "db.example"}, "not trusted"},
		"the address":           {"app", &tls.Config{RootCAs: roots}, "not trusted"},
	} {
		if err := ping(test.user, test.cfg); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	plain := testmariadb.Start(t, "bind-address="+addr, "port=3307")
	must(t, openMySQL(t, plain.DSN()), "CREATE USER app IDENTIFIED BY 'secret'")
	src, err := sqlsource.Open(source.Login{URL: "mysql://app@" + addr + ":3307/test", TLS: good}, sqlsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	if err := src.Ping(t.Context()); err == nil || !strings.Contains(src.Explain(err), "does not speak TLS") {
		t.Errorf("a server without TLS: %v", err)
	}
}
