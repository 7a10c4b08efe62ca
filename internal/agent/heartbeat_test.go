package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// Somebody outside hears from the agent while it sweeps, and of nothing else.
func TestHeartbeatOfAnAgent(t *testing.T) {
	t.Parallel()
	const secret = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err != nil || len(raw) != 24 {
		t.Fatal(err)
	}
	verify, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var beats []alert.Beat
	outside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var b alert.Beat
		if err := json.Unmarshal(raw, &b); err != nil || b.Type != alert.TypeHeartbeat {
			t.Errorf("%v: %s", err, raw)
		}
		if err := verify.Verify(raw, r.Header); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		beats = append(beats, b)
	}))
	t.Cleanup(outside.Close)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(beats)
	}
	more := func(why string) {
		t.Helper()
		n := count()
		testredis.Eventually(t, within, func() bool { return count() > n }, why)
	}

	srv := testredis.Start(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	beating := target(srv.URL()) + "\nalert:\n  heartbeat: {every: 1s, webhook: {url: '" + outside.URL + "', allow_private: true, secret_files: ['" + key + "']}}\n"
	b := newBed(t, beating)
	more("no heartbeat comes")
	more("no second heartbeat comes")
	mu.Lock()
	first := beats[0]
	mu.Unlock()
	if first.Targets != (alert.BeatTargets{Total: 1, Up: 1}) || first.Agent == "" || first.OldestSweepSeconds > 5 {
		t.Errorf("got %+v", first)
	}
	b.awaitMetric("locksteward_heartbeat_last_success_timestamp_seconds ")
	b.awaitMetric(`locksteward_sweep_stale{target="main"} 0`)

	// Redis hangs: sweeps are missing.
	srv.Pause()
	b.awaitMetric(`locksteward_sweep_stale{target="main"} 1`)
	n, since := count(), time.Now()
	testredis.Eventually(t, within, func() bool { return time.Since(since) > 2500*time.Millisecond }, "time does not pass")
	if count() > n+1 { // one may have been under way
		t.Errorf("%d heartbeats while sweeps were missing", count()-n)
	}
	if b.logs.FilterMessageSnippet("heartbeats stop").Len() != 1 {
		t.Error("the log does not say that heartbeats stop")
	}
	srv.Resume()
	more("heartbeats do not go on")
	b.awaitMetric(`locksteward_sweep_stale{target="main"} 0`)

	// A reload ends it.
	b.write(target(srv.URL()))
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	n, since = count(), time.Now()
	testredis.Eventually(t, within, func() bool { return time.Since(since) > 2500*time.Millisecond }, "time does not pass")
	if count() > n+1 {
		t.Error("heartbeats go on after the reload")
	}
	b.write(strings.Replace(beating, key, key+"-gone", 1))
	if err := b.agent.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "alert.heartbeat.webhook.secret_files[0]") {
		t.Errorf("reload: %v", err)
	}
	b.stop()
	for line := range strings.SplitSeq(b.everything(), "\n") {
		if strings.Contains(line, strings.TrimPrefix(secret, "whsec_")) {
			t.Errorf("the secret is in %s", line)
		}
	}
}
