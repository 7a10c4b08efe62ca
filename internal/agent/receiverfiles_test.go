package agent_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// verifier is three webhooks that take what is signed with one secret.
type verifier struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	secret  *standard.Webhook
	took    map[string]int // by path
	refused map[string]int
}

func newVerifier(t *testing.T) *verifier {
	t.Helper()
	v := &verifier{t: t, took: map[string]int{}, refused: map[string]int{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.secret.Verify(raw, r.Header) != nil {
			v.refused[r.URL.Path]++
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		v.took[r.URL.Path]++
	}))
	t.Cleanup(srv.Close)
	v.url = srv.URL
	return v
}

// wants changes the secret and forgets what came before.
func (v *verifier) wants(secret string) {
	v.t.Helper()
	wh, err := standard.NewWebhook(secret)
	if err != nil {
		v.t.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secret, v.took, v.refused = wh, map[string]int{}, map[string]int{}
}

func (v *verifier) counts(path string) (took, refused int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.took[path], v.refused[path]
}

// TestSecretsOfReceiversAreUsedWithinFiveSeconds: a receiver, an audit sink and a
// heartbeat are refused, since the other side has a new secret already. What cannot
// be used is reported, and leaves the old one in use. As soon as the mounted secret is
// swapped, as Kubernetes does, all three are through within 5 s: no reload, and
// however long the waits between tries have become.
func TestSecretsOfReceiversAreUsedWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	secret := func(of string) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(of, 8)))
	}
	old, next := secret("old"), secret("next")
	outside := newVerifier(t)
	paths := []string{"/hook", "/audit", "/beat"}
	files := func(text string) map[string]string {
		return map[string]string{"key": text, "hook": outside.url + "/hook\n", "audit": outside.url + "/audit", "beat": outside.url + "/beat"}
	}
	m := testcert.Mount(t, files(old))
	srv := testredis.Start(t)
	for n := range 3 { // three that are refused open the circuit
		if err := srv.Client(t).Set(t.Context(), fmt.Sprint("lock:", n), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	outside.wants(next)
	hook := func(name string) string {
		return fmt.Sprintf("url_file: %q, secret_files: [%q], allow_private: true", m.Path(name), m.Path("key"))
	}
	b := newBed(t, fmt.Sprintf(`
targets: [{name: main, url: %q, schedule: '@every 1s'}]
classes: [{class: locks, match: ['lock:*']}]
alert:
  grouping: {by: [fingerprint], wait: 0s, interval: 0s}
  first_sweep: fire
  receivers: [{name: ops, kind: webhook, %s}]
  heartbeat: {every: 5m, webhook: {%s}}
audit: {sinks: [{name: siem, webhook: {%s}}]}
`, srv.URL(), hook("hook"), hook("beat"), hook("audit")))
	const file = "secret_files[0]"
	uses := map[string]string{"alert": "receivers.ops." + file, "heartbeat": "webhook." + file, "audit": "sinks.siem.webhook." + file}
	testredis.Eventually(t, within, func() bool {
		_, hooks := outside.counts("/hook")
		_, audits := outside.counts("/audit")
		_, beats := outside.counts("/beat")
		return hooks >= 3 && audits >= 4 && beats >= 1 // the next try of the sink is 8 s away
	}, "what is signed with the old secret is not refused")

	m.Swap(t, files(next[:len(next)/2]))
	for use, key := range uses {
		b.awaitMetric(fmt.Sprintf(`locksteward_credential_refused{file=%q,target="",use=%q} 1`, key, use))
	}
	if b.logs.FilterMessage("a file cannot be used: what it held before stays in use").Len() != len(uses) {
		t.Error("it is not reported once of each file")
	}
	for _, path := range paths {
		if took, _ := outside.counts(path); took > 0 {
			t.Errorf("%s took something", path)
		}
	}

	m.Swap(t, files(next))
	began := time.Now()
	for _, path := range paths {
		testredis.Eventually(t, within, func() bool { took, _ := outside.counts(path); return took > 0 }, path+" gets nothing")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the new secret was used after %s, want 5 s", took)
	}
	testredis.Eventually(t, within, func() bool { return !strings.Contains(b.metrics(), "credential_refused{") }, "a file is still refused")
	if n := b.logs.FilterMessage("a file was replaced and is in use").Len(); n < len(uses) {
		t.Errorf("the log reports %d files that were replaced", n)
	}
	all := b.everything()
	for _, s := range []string{old, next, next[:len(next)/2]} {
		if strings.Contains(all, strings.TrimPrefix(s, "whsec_")) {
			t.Error("a secret is in logs, metrics or store")
		}
	}
}
