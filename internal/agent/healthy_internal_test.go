package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// An agent whose loops wait for each other fails its health check, one that waits for
// its Redis, its store and its receivers does not.
func TestHealthy(t *testing.T) {
	t.Parallel()
	srv, db := testredis.Start(t), testpg.Start(t)
	rdb := srv.Client(t)
	hang := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(hang) })
	dir := t.TempDir()
	file := filepath.Join(dir, "locksteward.yaml")
	text := fmt.Sprintf(`
targets: [{name: main, url: '%s', schedule: '@every 1s'}]
classes: [{class: orders, match: ['lock:order:*']}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '%s'}
store: {dsn: '%s'}
alert:
  first_sweep: fire
  drain_timeout: 500ms
  heartbeat: {every: 10s, webhook: {url: '%[4]s', allow_private: true, timeout: 10s}}
  receivers: [{name: ops, kind: webhook, url: '%[4]s', allow_private: true, timeout: 20s}]
`, srv.URL(), filepath.Join(dir, "users.yaml"), db.DSN(), receiver.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), zaptest.NewLogger(t), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const checks = 5
	a.liveness.SetChecks(checks)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	healthy := func() (string, int) {
		resp, err := http.Get("http://" + a.MetricsAddr().String() + "/-/healthy") //nolint:noctx // of this test
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body), resp.StatusCode
	}
	testredis.Eventually(t, 20*time.Second, func() bool {
		w, err := a.targets.Get("main")
		if err != nil {
			return false
		}
		_, swept := w.LastSweep()
		return swept
	}, "nothing is swept")

	db.Pause()
	if err := rdb.Set(t.Context(), "lock:order:1", "7f3c0d9ae2b84c55a1d0", 0).Err(); err != nil {
		t.Fatal(err)
	}
	srv.Pause()
	until := a.liveness.Checks() + 3*checks
	testredis.Eventually(t, time.Minute, func() bool {
		if said, code := healthy(); code != http.StatusOK || said != "ok\n" {
			t.Errorf("with everything else away: %d %s", code, said)
			return true
		}
		return a.liveness.Checks() >= until
	}, "nobody looks")
	srv.Resume()
	db.Resume()
}
