package connect_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// bad are certificates that a server should not have, and what is said of each.
func bad(t *testing.T, ca *testcert.CA) map[string]struct {
	pair testcert.Pair
	want string
} {
	t.Helper()
	now := time.Now()
	return map[string]struct {
		pair testcert.Pair
		want string
	}{
		"expired": {
			ca.Issue(t, testcert.Leaf{Name: "redis", NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Minute)}),
			"the server's certificate has expired or is not valid yet; renew it",
		},
		"not valid yet": {
			ca.Issue(t, testcert.Leaf{Name: "redis", NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)}),
			"the server's certificate has expired or is not valid yet; renew it",
		},
		"of another address": {
			ca.Issue(t, testcert.Leaf{Name: "redis", Hosts: []string{"192.0.2.1"}}),
			"the server's certificate is not for 127.0.0.1; use a name that it carries",
		},
		"of names alone": {
			ca.Issue(t, testcert.Leaf{Name: "redis", Hosts: []string{"redis.example.org"}}),
			"the server's certificate is not for 127.0.0.1; use a name that it carries",
		},
		"of another authority": {
			testcert.NewCA(t, "others").Issue(t, testcert.Leaf{Name: "redis"}),
			"the server's certificate is signed by an authority that is not trusted here; set ca_file (--server-ca-file of a command)",
		},
		"of an authority of the same name": {
			testcert.NewCA(t, "servers").Issue(t, testcert.Leaf{Name: "redis"}),
			"the server's certificate is signed by an authority that is not trusted here; set ca_file (--server-ca-file of a command)",
		},
	}
}

// TestExplainCertificatesOfTheServer: what is wrong with the certificate that a server
// shows is said in its own words, by anyone who connects in whatever way.
func TestExplainCertificatesOfTheServer(t *testing.T) {
	t.Parallel()
	servers, clients := testcert.NewCA(t, "servers"), testcert.NewCA(t, "clients")
	for name, test := range bad(t, servers) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, clients, clients.Issue(t, testcert.Leaf{Name: "client"}))
			testcert.Put(t, s.ca, servers.PEM)
			s.show(test.pair)
			conn := open(t, s.config())
			_, err := conn.Masters(t.Context())
			if got := connect.Explain(err); got != test.want {
				t.Errorf("the pool: Explain(%v) = %q, want %q", err, got, test.want)
			}
			err = dial(t, conn, s.srv.Addr())
			if got := connect.Explain(err); got != test.want {
				t.Errorf("the watch: Explain(%v) = %q, want %q", err, got, test.want)
			}
			s.show(servers.Issue(t, testcert.Leaf{Name: "renewed"}))
			testredis.Eventually(t, within, func() bool {
				_, err := conn.Masters(t.Context())
				return err == nil
			}, "with a certificate that is right nobody connects")
		})
	}
}

// TestExplainCertificatesOfTheClient: what a server has against ours is ours to renew,
// and is said so.
func TestExplainCertificatesOfTheClient(t *testing.T) {
	t.Parallel()
	clients := testcert.NewCA(t, "clients")
	for name, test := range map[string]struct {
		pair testcert.Pair
		// ahead is how far the server's clock is ahead of ours: a certificate that is
		// over by our own clock is not sent.
		ahead time.Duration
		bare  bool // no certificate at all
		want  string
		older string // what a server of TLS 1.2 has us say, if it is something else
	}{
		"expired": {
			pair: clients.Issue(t, testcert.Leaf{Name: "client", NotAfter: time.Now().Add(time.Hour)}), ahead: 2 * time.Hour,
			want: "the server refused our certificate, which has expired; put a new one into cert_file and key_file",
		},
		"of another authority": {
			pair: testcert.NewCA(t, "others").Issue(t, testcert.Leaf{Name: "client"}),
			want: "the server does not trust the authority that signed our certificate; put one that it trusts into cert_file",
		},
		"none": {
			pair: clients.Issue(t, testcert.Leaf{Name: "client"}), bare: true,
			want:  "the server wants a client certificate; set cert_file and key_file (--server-cert-file, --server-key-file of a command)",
			older: "the server refused the TLS handshake; set cert_file and key_file (--server-cert-file, --server-key-file of a command) if it wants a client certificate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, clock := testredis.StartClocked(t, testredis.WithTLS(), testredis.WithConfig("tls-auth-clients yes"))
			s := stageOn(t, srv, clients, test.pair)
			clock.Set(test.ahead)
			cfg := s.config()
			if test.bare {
				cfg.CertFile, cfg.KeyFile = "", ""
			}
			for protocols, want := range map[string]string{"TLSv1.2": cmp.Or(test.older, test.want), "TLSv1.3": test.want} {
				if err := s.admin.ConfigSet(t.Context(), "tls-protocols", protocols).Err(); err != nil {
					t.Fatal(err)
				}
				// With TLS 1.3 the refusal comes when we write already: what is seen
				// first differs from one time to the next.
				for range 10 {
					err := dial(t, open(t, cfg), srv.Addr())
					if got := connect.Explain(err); got != want {
						t.Fatalf("%s: Explain(%v) = %q, want %q", protocols, err, got, want)
					}
				}
			}
		})
	}
}
