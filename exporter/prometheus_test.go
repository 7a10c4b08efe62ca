package exporter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/testredis"
)

// TestUnderPrometheus runs a real Prometheus with the shipped rules, as they
// are, against a real listener with a finding that fires.
func TestUnderPrometheus(t *testing.T) {
	t.Parallel()
	binary := program(t, "prometheus")
	e := full(t)
	target := serve(t, exporter.Config{}, e, readyNow)
	api := startPrometheus(t, binary, target)

	testredis.Eventually(t, 15*time.Second, func() bool {
		var active struct {
			ActiveTargets []struct{ Health, LastError string }
		}
		return api.get(t, "/api/v1/targets", nil, &active) && len(active.ActiveTargets) == 1 && active.ActiveTargets[0].Health == "up"
	}, "Prometheus scrapes the agent")

	type alert struct {
		Labels      map[string]string
		Annotations map[string]string
		State       string
	}
	var alerts struct{ Alerts []alert }
	firing := func(name string) (alert, bool) {
		for _, a := range alerts.Alerts {
			if a.Labels["alertname"] == name && a.State == "firing" {
				return a, true
			}
		}
		return alert{}, false
	}
	testredis.Eventually(t, 15*time.Second, func() bool {
		if !api.get(t, "/api/v1/alerts", nil, &alerts) {
			return false
		}
		a, ok := firing("LockstewardDeadlockRisk")
		// Rules of a group are evaluated one after the other: the detail comes a
		// moment later.
		_, detailed := firing("LockstewardLockWithoutTTL")
		return ok && detailed && a.Annotations["team"] == "checkout"
	}, "LockstewardDeadlockRisk fires, and the detail beside it")
	a, _ := firing("LockstewardDeadlockRisk")
	if a.Labels["severity"] != "critical" || a.Labels["target"] != "m" || a.Labels["class"] != "orders" {
		t.Errorf("labels of the alert: %v", a.Labels)
	}
	if a.Annotations["runbook_url"] == "" || !strings.Contains(a.Annotations["summary"], "orders") {
		t.Errorf("annotations of the alert: %v", a.Annotations)
	}
	if d, ok := firing("LockstewardLockWithoutTTL"); !ok || d.Labels["severity"] != "info" {
		t.Errorf("the detail beside it: %v, %v", ok, d.Labels)
	}
	for _, quiet := range []string{"LockstewardTargetDown", "LockstewardAgentDown", "LockstewardLockLost"} {
		if _, ok := firing(quiet); ok {
			t.Errorf("%s fires without a reason", quiet)
		}
	}

	var groups struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if !api.get(t, "/api/v1/rules", nil, &groups) {
		t.Fatal("no rules")
	}
	loaded := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			loaded++
			if r.Health == "err" {
				t.Errorf("rule %s: %s", r.Name, r.LastError)
			}
		}
	}
	if wantRules := len(readRules(t)); loaded != wantRules {
		t.Errorf("%d rules are loaded, the files have %d", loaded, wantRules)
	}

	// Every panel of the dashboard gets data from it.
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			var result struct{ Result []json.RawMessage }
			testredis.Eventually(t, 10*time.Second, func() bool {
				return api.get(t, "/api/v1/query", url.Values{"query": {substitute(q.Expr)}}, &result) && len(result.Result) > 0
			}, fmt.Sprintf("panel %q has data for %s", p.Title, q.Expr))
		}
	}
}

// prometheusAPI asks a running Prometheus.
type prometheusAPI struct {
	base   string
	client *http.Client
}

// get decodes the data of an answer; false until there is one.
func (p prometheusAPI) get(t *testing.T, path string, params url.Values, data any) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+path+"?"+params.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return false
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	err = json.NewDecoder(res.Body).Decode(&answer)
	if closeErr := res.Body.Close(); err != nil || closeErr != nil {
		return false
	}
	if answer.Status == "error" {
		t.Fatalf("%s?%s: %s", path, params.Encode(), answer.Error)
	}
	return answer.Status == "success"
}

// startPrometheus runs Prometheus on a private port until the test ends.
func startPrometheus(t *testing.T, binary, target string) prometheusAPI {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"alerts.yaml", "alerts-agent.yaml", "recording.yaml"} {
		file, err := filepath.Abs(filepath.Join(grafanaDir, name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, fmt.Sprintf("%q", file))
	}
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(t, config, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs: [{job_name: locksteward, static_configs: [{targets: [%q]}]}]
`, strings.Join(files, ", "), target))

	addr := freeAddr(t)
	log := &syncBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		if t.Failed() {
			t.Logf("prometheus: %v\n%s", err, log)
		}
	})
	return prometheusAPI{base: "http://" + addr, client: newClient(t, nil)}
}

// freeAddr returns a loopback address that nobody listens on now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// syncBuffer keeps what a process writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
