package dashboards_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/internal/testkit/testprom"
)

// sample is a series and its value, as promtool writes them.
type sample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// series is what Prometheus has, in promtool's notation.
type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// TestQueries asks what panels show in situations that TestEveryPanelHasData does not
// bring about: something is away, unknown, or all is well.
func TestQueries(t *testing.T) {
	t.Parallel()
	promtool := testprom.Program(t, "promtool")
	up := func(target, value string) series {
		return series{fmt.Sprintf("locksteward_target_up{job=%q,instance=%q,target=%q}", "locksteward", "a:1", target), value + "x60"}
	}
	swept := func(target string) series {
		return series{fmt.Sprintf("locksteward_sweep_last_success_timestamp_seconds{job=%q,target=%q}", "locksteward", target), "1x60"}
	}
	finding := func(class, rule, severity string, n int) series {
		return series{fmt.Sprintf("locksteward_findings{job=%q,target=%q,class=%q,rule=%q,severity=%q,risk=%q}", "locksteward", "m", class, rule, severity, ""), fmt.Sprintf("%dx60", n)}
	}
	const fleet, agent, one = "locksteward.json", "locksteward-agent.json", "locksteward-class.json"
	cases := []struct {
		name, file, panel string
		have              []series
		want              []sample
	}{
		{
			"all targets are well", fleet, "Targets",
			[]series{up("m", "1"), swept("m"), {`locksteward_sweep_stale{job="locksteward",target="m"}`, "0x60"}},
			[]sample{{`{state="All are up and swept"}`, 0}},
		},
		{
			"each target that is not well is named once", fleet, "Targets",
			[]series{
				up("m", "1"), swept("m"), up("away", "0"), up("new", "1"),
				up("late", "1"), swept("late"),
				{`locksteward_sweep_stale{job="locksteward",target="late"}`, "1x60"},
				up("idle", "1"), swept("idle"),
				{`locksteward_budget_paused{job="locksteward",target="idle"}`, "1x60"},
				{`locksteward_sweep_stale{job="locksteward",target="idle"}`, "1x60"},
			},
			[]sample{
				{`{target="away",state="is down"}`, 1},
				{`{target="new",state="was never swept"}`, 1},
				{`{target="late",state="is swept late"}`, 1},
				{`{target="idle",state="is paused"}`, 0.5},
			},
		},
		{"without an agent nothing is known", fleet, "Targets", nil, []sample{{`{state="Unknown: no agent answers"}`, 1}}},
		{"nothing is green before a sweep", fleet, "Critical findings", []series{up("m", "1")}, nil},
		{"no finding is 0 after a sweep", fleet, "Critical findings", []series{up("m", "1"), swept("m")}, []sample{{`{}`, 0}}},
		{"deadlock risk is unknown before a sweep", fleet, "Deadlock risk", nil, nil},
		{
			"deadlock risk counts critical findings and warnings", fleet, "Deadlock risk",
			[]series{
				swept("m"),
				{`locksteward_findings{job="locksteward",target="m",class="orders",rule="ttl/none",severity="critical",risk="deadlock"}`, "2x60"},
				{`locksteward_findings{job="locksteward",target="m",class="orders",rule="hold/too-long",severity="warning",risk="deadlock"}`, "1x60"},
				{`locksteward_findings{job="locksteward",target="m",class="jobs",rule="ttl/none",severity="info",risk="deadlock"}`, "5x60"},
				{`locksteward_findings{job="locksteward",target="m",class="jobs",rule="hold/lost",severity="critical",risk=""}`, "5x60"},
			},
			[]sample{{`{}`, 3}},
		},
		{"a class that does not exist has no findings, not 0", one, "Findings", []series{swept("m")}, nil},
		{"no heartbeat is unknown", agent, "Last heartbeat", []series{up("m", "1")}, nil},
		{
			"findings have an order and a page to lead to", fleet, "Firing now",
			[]series{finding("orders", "ttl/none", "critical", 2), finding("orders", "hold/lost", "warning", 9), finding("", "server/flushed", "info", 1)},
			[]sample{
				{`{target="m",class="orders",rule="ttl/none",severity="critical",order="1",page="class",of="class=orders"}`, 2},
				{`{target="m",class="orders",rule="hold/lost",severity="warning",order="2",page="class",of="class=orders"}`, 9},
				{`{target="m",rule="server/flushed",severity="info",order="3",page="agent",of="class="}`, 1},
			},
		},
		{
			"locks by name", fleet, "Locks held longest",
			[]series{
				{`locksteward_lock_age_seconds{job="locksteward",target="m",class="orders",key="lock:order:1"}`, "60x60"},
				{`locksteward_lock_longest_hold_seconds{job="locksteward",target="m",class="orders"}`, "60x60"},
			},
			[]sample{{`{target="m",class="orders",key="lock:order:1"}`, 60}},
		},
		{
			"without names the oldest hold of each class", fleet, "Locks held longest",
			[]series{
				{`locksteward_lock_longest_hold_seconds{job="locksteward",target="m",class="orders"}`, "60x60"},
				{`locksteward_lock_longest_hold_seconds{job="locksteward",target="m",class="jobs"}`, "90x60"},
			},
			[]sample{{`{target="m",class="jobs"}`, 90}, {`{target="m",class="orders"}`, 60}},
		},
		{
			"no quantile where no hold ended", fleet, "Hold time quantiles",
			[]series{
				{`locksteward_lock_hold_seconds_bucket{job="locksteward",target="m",class="orders",le="1"}`, "3x60"},
				{`locksteward_lock_hold_seconds_bucket{job="locksteward",target="m",class="orders",le="+Inf"}`, "3x60"},
			},
			nil,
		},
		{
			"counts are whole", fleet, "Lost locks",
			[]series{{`locksteward_locks_lost_total{job="locksteward",target="m",class="orders"}`, "0x58 1x10"}},
			[]sample{{`{target="m",class="orders"}`, 1}},
		},
	}
	type asked struct {
		Expr string   `yaml:"expr"`
		At   string   `yaml:"eval_time"`
		Want []sample `yaml:"exp_samples"`
	}
	var tests []map[string]any
	boards := readBoards(t)
	for _, c := range cases {
		b := boards[slices.IndexFunc(boards, func(b board) bool { return b.file == c.file })]
		i := slices.IndexFunc(b.all(), func(p panel) bool { return p.Title == c.panel })
		if i < 0 {
			t.Fatalf("%s has no panel %q", c.file, c.panel)
		}
		tests = append(tests, map[string]any{
			"name": c.name, "interval": "5s", "input_series": c.have,
			"promql_expr_test": []asked{{filled(b.all()[i].Targets[0].Expr, time.Minute), "5m", c.want}},
		})
	}
	raw, err := yaml.Marshal(map[string]any{"evaluation_interval": "5s", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
