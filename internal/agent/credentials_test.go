package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestPasswordIsUsedWithinFiveSeconds: the password is changed at the server and
// all connections are cut. The target is away until the file has the new one, and
// back within 5 s from then on, however long the waits between tries have become:
// no reload, no restart.
// fault: 46
func TestPasswordIsUsedWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on >one ~* &* +@all"))
	admin := srv.Client(t)
	file := filepath.Join(t.TempDir(), "pw")
	testcert.Put(t, file, []byte("one\n"))
	b := newBed(t, fmt.Sprintf("targets: [{name: main, url: %q, username: scanner, password_file: %q, schedule: '@every 1s'}]\n", srv.URL(), file))
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	for _, args := range [][]any{{"acl", "setuser", "scanner", "resetpass", ">hunter2"}, {"client", "kill", "user", "scanner"}} {
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.awaitMetric(`locksteward_target_up{target="main"} 0`)
	testredis.Eventually(t, within, func() bool {
		for _, e := range b.logs.FilterMessage("target is still away").All() {
			if e.ContextMap()["tries"].(int64) >= 5 { // the next wait is 4 s at least
				return true
			}
		}
		return false
	}, "the target is not tried again")
	testcert.Put(t, file, []byte("hunter2\n"))
	began := time.Now()
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the new password was used after %s, want 5 s", took)
	}
	if strings.Contains(b.everything(), "hunter2") {
		t.Error("the password is in logs, metrics or store")
	}
}

// TestRefusedCommandsAreMetrics: each command that the user lost has a series while
// it is refused, and none before.
// fault: 46
func TestRefusedCommandsAreMetrics(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on >one ~* &* +@all"))
	admin := srv.Client(t)
	if err := admin.Set(t.Context(), "lock:order:1", "token", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pw")
	testcert.Put(t, file, []byte("one\n"))
	b := newBed(t, fmt.Sprintf("targets: [{name: main, url: %q, username: scanner, password_file: %q, schedule: '@every 1s'}]\n", srv.URL(), file))
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	if text := b.metrics(); strings.Contains(text, "locksteward_command_refused{") {
		t.Errorf("refused before any right was taken: %s", text)
	}
	for _, command := range []string{"info", "pexpiretime"} {
		if err := admin.Do(t.Context(), "acl", "setuser", "scanner", "-"+command).Err(); err != nil {
			t.Fatal(err)
		}
		b.awaitMetric(fmt.Sprintf(`locksteward_command_refused{command=%q,target="main"} 1`, command))
	}
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	if text := b.metrics(); strings.Contains(text, `locksteward_command_refused{command="memory`) {
		t.Errorf("a command that is allowed counts as refused: %s", text)
	}
}

// TestSwappedCertificateIsReportedOnce: a certificate without its key is warned of once
// and shown, the old one stays in use, and the new one is from the moment on that
// its key is there. So for a certificate that is over.
// fault: 25
func TestSwappedCertificateIsReportedOnce(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithTLS(), testredis.WithConfig("tls-auth-clients yes"))
	admin := srv.Client(t)
	ca := testcert.NewCA(t, "clients")
	dir := t.TempDir()
	first := ca.Issue(t, testcert.Leaf{Name: "first", NotAfter: time.Now().Add(20 * 24 * time.Hour)})
	trusted, cert, key := testcert.Files(t, dir, "client", ca.PEM, first)
	if err := admin.ConfigSet(t.Context(), "tls-ca-cert-file", trusted).Err(); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, fmt.Sprintf("targets: [{name: main, url: %q, ca_file: %q, cert_file: %q, key_file: %q, schedule: '@every 1s', release_credentials: {}}]\n",
		srv.URL(), srv.CAFile(), cert, key))
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	ends := func(p testcert.Pair, use string) string {
		return fmt.Sprintf(`locksteward_certificate_expiry_timestamp_seconds{file="cert_file",target="main",use=%q} %v`, use, float64(p.Leaf.NotAfter.Unix()))
	}
	b.awaitMetric(ends(first, "target"))
	b.awaitMetric(ends(first, "release"))
	b.awaitMetric(`locksteward_certificate_expiry_timestamp_seconds{file="server",target="main",use="target"}`)
	b.awaitMetric(`locksteward_certificate_expiry_timestamp_seconds{file="ca_file",target="main",use="target"}`)
	const refused = `locksteward_credential_refused{file="cert_file",target="main",use="target"} 1`
	if strings.Contains(b.metrics(), "credential_refused{") {
		t.Error("a file is refused from the start")
	}

	next := ca.Issue(t, testcert.Leaf{Name: "second", NotAfter: time.Now().Add(40 * 24 * time.Hour)})
	testcert.Put(t, cert, next.Cert)
	b.awaitMetric(refused)
	// New connections are made with the one before.
	if err := admin.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool {
		return strings.Contains(admin.ClientList(t.Context()).Val(), "name=locksteward-tracker")
	}, "no new connection")
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	// A sweep whose connection was killed says that the target is down: until the next one.
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	if !strings.Contains(b.metrics(), ends(first, "target")) {
		t.Errorf("the certificate before is not in use:\n%s", b.metrics())
	}
	warned := func(file, use string) int {
		n := 0
		for _, e := range b.logs.FilterMessage("a file cannot be used: what it held before stays in use").All() {
			if e.ContextMap()["file"] == file && e.ContextMap()["use"] == use {
				n++
			}
		}
		return n
	}
	testcert.Put(t, key, next.Key)
	b.awaitMetric(ends(next, "target"))
	b.awaitMetric(ends(next, "release"))
	if strings.Contains(b.metrics(), refused) {
		t.Error("the whole pair is refused")
	}
	if n := warned("cert_file", "target"); n != 1 {
		t.Errorf("warned %d times, want once", n)
	}
	if b.logs.FilterMessage("a file was replaced and is in use").Len() == 0 {
		t.Error("nothing is said of the new certificate")
	}

	over := ca.Issue(t, testcert.Leaf{Name: "over", NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	testcert.Put(t, cert, over.Cert)
	testcert.Put(t, key, over.Key)
	b.awaitMetric(refused)
	if !strings.Contains(b.metrics(), ends(next, "target")) {
		t.Error("an expired certificate is in use")
	}
	soon := ca.Issue(t, testcert.Leaf{Name: "soon", NotAfter: time.Now().Add(24 * time.Hour)})
	testcert.Put(t, cert, soon.Cert)
	testcert.Put(t, key, soon.Key)
	testredis.Eventually(t, within, func() bool {
		return b.logs.FilterMessage("a certificate ends soon: put a new one into its file").Len() > 0
	}, "nobody is notified that it ends soon")
	if err := os.Remove(srv.CAFile()); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_credential_refused{file="ca_file",target="main",use="target"} 1`)
	if !strings.Contains(b.metrics(), `locksteward_target_up{target="main"} 1`) {
		t.Error("the target is away without its authority's file")
	}
}
