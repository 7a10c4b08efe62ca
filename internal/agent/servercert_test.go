package agent_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestTargetOfABadCertificate: a target whose server shows a certificate that does not
// count is down, for the reason that a person can act on, and is back without a restart
// or a reload once the certificate is replaced.
func TestTargetOfABadCertificate(t *testing.T) {
	t.Parallel()
	ca, now := testcert.NewCA(t, "servers"), time.Now()
	for name, test := range map[string]struct {
		pair testcert.Pair
		want string
	}{
		"expired": {
			ca.Issue(t, testcert.Leaf{Name: "redis", NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Minute)}),
			"the server's certificate has expired or is not valid yet; renew it",
		},
		"of another host": {
			ca.Issue(t, testcert.Leaf{Name: "redis", Hosts: []string{"redis.example.org"}}),
			"the server's certificate is not for 127.0.0.1; use a name that it carries",
		},
		"of an unknown authority": {
			testcert.NewCA(t, "others").Issue(t, testcert.Leaf{Name: "redis"}),
			"the server's certificate is signed by an authority that is not trusted here; set ca_file (--server-ca-file of a command)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, testredis.WithTLS())
			admin := srv.Client(t)
			dir := t.TempDir()
			// show has the server show a certificate, to those too who are connected.
			show := func(pair testcert.Pair) {
				t.Helper()
				cert, key := filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
				testcert.Put(t, cert, pair.Cert)
				testcert.Put(t, key, pair.Key)
				for _, args := range [][]any{
					{"config", "set", "tls-cert-file", cert, "tls-key-file", key},
					{"client", "kill", "type", "normal", "skipme", "yes"},
					{"client", "kill", "type", "pubsub", "skipme", "yes"},
				} {
					if err := admin.Do(t.Context(), args...).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
			good := ca.Issue(t, testcert.Leaf{Name: "redis"})
			show(good)
			trusted := filepath.Join(dir, "ca.pem")
			testcert.Put(t, trusted, ca.PEM)
			b := newBed(t, fmt.Sprintf("targets: [{name: main, url: %q, ca_file: %q, schedule: '@every 1s'}]\n", srv.URL(), trusted))
			b.awaitMetric(`locksteward_target_up{target="main"} 1`)
			b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)

			show(test.pair)
			b.awaitMetric(`locksteward_target_up{target="main"} 0`)
			testredis.Eventually(t, within, func() bool { return b.down() == test.want }, "the reason is not "+test.want)

			show(ca.Issue(t, testcert.Leaf{Name: "renewed"}))
			testredis.Eventually(t, back, func() bool { return strings.Contains(b.metrics(), `locksteward_target_up{target="main"} 1`) }, "the target does not come back with the certificate")
			b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
		})
	}
}
