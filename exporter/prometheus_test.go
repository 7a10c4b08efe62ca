package exporter_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/testkit/testprom"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// TestUnderPrometheus runs a real Prometheus with the shipped rules, as they
// are, against a real listener with a finding that fires.
func TestUnderPrometheus(t *testing.T) {
	t.Parallel()
	var files []string
	for _, name := range ruleFiles {
		files = append(files, filepath.Join(grafanaDir, name))
	}
	e := full(t)
	api := testprom.Start(t, testprom.Options{Targets: []string{serve(t, exporter.Config{}, e, readyNow)}, RuleFiles: files})
	get := func(path string, data any) bool { return api.Get(t.Context(), path, nil, data) == nil }

	testredis.Eventually(t, time.Minute, func() bool {
		var active struct {
			ActiveTargets []struct{ Health, LastError string }
		}
		return get("/api/v1/targets", &active) && len(active.ActiveTargets) == 1 && active.ActiveTargets[0].Health == "up"
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
	testredis.Eventually(t, time.Minute, func() bool {
		if !get("/api/v1/alerts", &alerts) {
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
	if !get("/api/v1/rules", &groups) {
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

	// Every query of the dashboards is answered; test/dashboards wants data for each.
	for _, d := range readDashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if _, err := api.Instant(t.Context(), substitute(q.Expr), time.Now()); err != nil {
					t.Errorf("panel %q of %s: %s: %v", p.Title, d.file, q.Expr, err)
				}
			}
		}
	}
}
