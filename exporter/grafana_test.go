package exporter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/rules"
)

const grafanaDir = "../grafana"

// panel is what the tests read of a panel.
type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ Type, UID string }
	Targets     []struct{ Expr string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	GridPos     struct{ H, W, X, Y int }
}

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(grafanaDir, "locksteward.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatalf("locksteward.json: %v", err)
	}
	return d
}

// rule is one alert or recording rule of a file.
type rule struct {
	file        string
	Alert       string
	Record      string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func readRules(t *testing.T) []rule {
	t.Helper()
	var out []rule
	for _, file := range []string{"alerts.yaml", "alerts-agent.yaml", "recording.yaml"} {
		raw, err := os.ReadFile(filepath.Join(grafanaDir, file))
		if err != nil {
			t.Fatal(err)
		}
		var f struct{ Groups []struct{ Rules []rule } }
		if err := yaml.Unmarshal(raw, &f); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				r.file = file
				out = append(out, r)
			}
		}
	}
	return out
}

var (
	// metricName skips the names of recording rules, which have colons.
	metricName = regexp.MustCompile(`(?:^|[^:a-z_])(locksteward_[a-z_]+)`)
	selector   = regexp.MustCompile(`(locksteward_[a-z_]+)\{([^}]*)\}`)
	ruleLabel  = regexp.MustCompile(`rule="([^"]*)"`)
	pageLink   = regexp.MustCompile(`\]\(([^):#]+)\)`)
	labelName  = regexp.MustCompile(`(\w+)\s*(?:=|!=|=~|!~)\s*"`)
)

// metricNamed finds a metric by a name in a query, which may be one of the
// series of a histogram.
func metricNamed(name string) (exporter.Metric, bool) {
	for _, m := range exporter.Metrics() {
		if m.Name == name || m.Type == exporter.Histogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(name, m.Name)) {
			return m, true
		}
	}
	return exporter.Metric{}, false
}

// checkNames fails for metrics and labels that do not exist.
func checkNames(t *testing.T, where, text string) []string {
	t.Helper()
	var names []string
	for _, found := range metricName.FindAllStringSubmatch(text, -1) {
		name := found[1]
		if strings.HasPrefix(name, "locksteward_client_") {
			continue // the lock library's own
		}
		m, ok := metricNamed(name)
		if !ok {
			t.Errorf("%s names %s, which the exporter does not have", where, name)
			continue
		}
		names = append(names, m.Name)
	}
	for _, found := range selector.FindAllStringSubmatch(text, -1) {
		m, ok := metricNamed(found[1])
		if !ok {
			continue // told above
		}
		for _, l := range labelName.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(append([]string{"job", "instance"}, m.Labels...), l[1]) {
				t.Errorf("%s selects %s by %s, a label that it does not have", where, m.Name, l[1])
			}
		}
	}
	return names
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.UID == "" || len(d.UID) > 40 || d.SchemaVersion < 39 {
		t.Errorf("uid %q, schema version %d", d.UID, d.SchemaVersion)
	}
	if v := d.Templating.List; len(v) < 2 || v[0].Type != "datasource" || v[1].Name != "job" || v[2].Name != "target" {
		t.Errorf("variables are %+v, want datasource, job, target, ...", v)
	}
	for _, v := range d.Templating.List {
		checkNames(t, "variable "+v.Name, v.Definition)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	taken := map[[2]int]string{}
	used := map[string]bool{}
	for _, p := range d.Panels {
		where := fmt.Sprintf("panel %q", p.Title)
		if p.Title == "" || titles[p.Title] || ids[p.ID] {
			t.Errorf("%s (id %d) has no title, or one or an id that another has", where, p.ID)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("%s lies on panel %q or beyond the edge", where, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("%s has data source %q, want the variable", where, p.Datasource.UID)
		}
		if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%s has no description or no query", where)
		}
		if p.FieldConfig.Defaults.Unit == "" && p.Type != "heatmap" && p.Type != "state-timeline" {
			t.Errorf("%s has no unit", where)
		}
		for _, q := range p.Targets {
			names := checkNames(t, where, q.Expr)
			if len(names) == 0 {
				t.Errorf("%s has a query without a metric of ours: %s", where, q.Expr)
			}
			for _, n := range names {
				used[n] = true
			}
			if !strings.Contains(q.Expr, `job=~"$job"`) {
				t.Errorf("%s ignores the variables: %s", where, q.Expr)
			}
		}
	}
	for _, m := range exporter.Metrics() {
		if !used[m.Name] {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}

const (
	panelsBegin = "<!-- panels: written by go test ./exporter -run TestDashboardReadme -update -->\n"
	panelsEnd   = "<!-- end of panels -->\n"
)

func TestDashboardReadme(t *testing.T) {
	t.Parallel()
	file := filepath.Join(grafanaDir, "README.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	checkNames(t, file, string(raw))
	before, rest, ok := strings.Cut(string(raw), panelsBegin)
	_, after, ok2 := strings.Cut(rest, panelsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part between %q and %q", file, panelsBegin, panelsEnd)
	}
	var b strings.Builder
	b.WriteString("| row | panel | metrics |\n| --- | --- | --- |\n")
	row := ""
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			row = p.Title
			continue
		}
		var names []string
		for _, q := range p.Targets {
			names = append(names, checkNames(t, p.Title, q.Expr)...)
		}
		slices.Sort(names)
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", row, p.Title, strings.Join(slices.Compact(names), "`, `"))
	}
	wantText := before + panelsBegin + b.String() + panelsEnd + after
	if *update {
		writeFile(t, file, wantText)
		return
	}
	if string(raw) != wantText {
		t.Errorf("%s is not what the dashboard shows; run: go test ./exporter -run TestDashboardReadme -update", file)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	const runbooks = "https://github.com/locksteward/locksteward/blob/main/docs/runbooks/"
	alerts := map[string]bool{}
	for _, r := range readRules(t) {
		checkNames(t, r.file+" "+r.Alert+r.Record, r.Expr)
		for _, found := range ruleLabel.FindAllStringSubmatch(r.Expr, -1) {
			if _, ok := rules.Lookup(found[1]); !ok {
				t.Errorf("%s waits for findings of %s, a rule that does not exist", r.Alert, found[1])
			}
		}
		if r.Alert == "" {
			continue
		}
		alerts[r.Alert] = true
		if strings.Contains(r.Expr, "_locks_without_ttl") {
			t.Errorf("%s asks _locks_without_ttl, which does not know the class's policy", r.Alert)
		}
		if r.Labels["severity"] == "" && !strings.Contains(r.Expr, "by (target, class, severity)") {
			t.Errorf("%s has no severity, and takes none from its findings", r.Alert)
		}
		for _, name := range []string{"summary", "description"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no %s", r.Alert, name)
			}
			checkNames(t, r.Alert+" "+name, r.Annotations[name])
		}
		if got, wantURL := r.Annotations["runbook_url"], runbooks+r.Alert+".md"; got != wantURL {
			t.Errorf("%s has runbook_url %q, want %q", r.Alert, got, wantURL)
		}
		page, err := os.ReadFile(filepath.Join("../docs/runbooks", r.Alert+".md"))
		if err != nil {
			t.Errorf("%s has no runbook: %v", r.Alert, err)
			continue
		}
		for _, heading := range []string{"# " + r.Alert + "\n", "\n## Meaning\n", "\n## What to check\n", "\n## How to fix\n"} {
			if !strings.Contains(string(page), heading) {
				t.Errorf("the runbook of %s has no heading %q", r.Alert, strings.TrimSpace(heading))
			}
		}
		checkNames(t, "the runbook of "+r.Alert, string(page))
		for _, link := range pageLink.FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(filepath.Join("../docs/runbooks", link[1])); err != nil {
				t.Errorf("the runbook of %s links to %s: %v", r.Alert, link[1], err)
			}
		}
	}
	for _, name := range []string{"DeadlockRisk", "LockWithoutTTL", "LockHeldTooLong", "LockLost", "RenewalFailing", "TargetDown", "SweepStale"} {
		if !alerts["Locksteward"+name] {
			t.Errorf("there is no alert Locksteward%s", name)
		}
	}
	pages, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); name != "README" && !alerts[name] {
			t.Errorf("%s belongs to no alert", page)
		}
	}
}

// program finds a program or skips the test, loudly; with CI set it fails.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed, and CI skips nothing; run: make deps", name)
		}
		t.Skipf("SKIPPED: %s is not installed; run: make deps", name)
	}
	return path
}

func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool := program(t, "promtool")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = grafanaDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	run("check", "rules", "alerts.yaml", "alerts-agent.yaml", "recording.yaml")
	run("test", "rules", "alerts_test.yaml")

	// Every query of the dashboard parses.
	type recording struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var queries []recording
	for _, p := range readDashboard(t).Panels {
		for i, q := range p.Targets {
			queries = append(queries, recording{fmt.Sprintf("panel:%d:query%d", p.ID, i), substitute(q.Expr)})
		}
	}
	raw, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": queries}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	writeFile(t, file, string(raw))
	run("check", "rules", file)
}

// substitute gives the variables of a panel's query the values of "All".
func substitute(expr string) string {
	return strings.NewReplacer("$job", ".*", "$target", ".*", "$class", ".*", "$__rate_interval", "1m").Replace(expr)
}
