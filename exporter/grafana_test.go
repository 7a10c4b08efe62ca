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
	"github.com/locksteward/locksteward/internal/testkit/testprom"
	"github.com/locksteward/locksteward/rules"
)

const grafanaDir = "../grafana"

// dashboardFiles are all dashboards, by what they are about.
var dashboardFiles = map[string]string{"fleet": "locksteward.json", "class": "locksteward-class.json", "agent": "locksteward-agent.json"}

// panel is what the tests read of a panel.
type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ Type, UID string }
	Targets     []struct{ Expr string }
	Links       []link
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []json.RawMessage }
			Links      []link
		}
		Overrides []struct {
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	GridPos struct{ H, W, X, Y int }
	Panels  []panel // of a closed row
}

type link struct{ Type, Title, URL string }

type dashboard struct {
	file          string
	UID, Title    string
	SchemaVersion int
	Tags          []string
	Links         []link
	Panels        []panel // in the order of the page, those of closed rows behind their row
	Inputs        []any   `json:"__inputs"`
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Multi                  bool
		}
	}
}

// readDashboards returns the dashboards, the fleet's first.
func readDashboards(t *testing.T) []dashboard {
	t.Helper()
	var out []dashboard
	for _, name := range []string{"fleet", "class", "agent"} {
		raw, err := os.ReadFile(filepath.Join(grafanaDir, dashboardFiles[name]))
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{file: dashboardFiles[name]}
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		checkLayout(t, d)
		d.Panels = flat(d.Panels)
		out = append(out, d)
	}
	return out
}

// flat is the panels with those of closed rows behind their row.
func flat(panels []panel) []panel {
	var out []panel
	for _, p := range panels {
		out = append(append(out, p), p.Panels...)
	}
	return out
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

var ruleFiles = []string{"alerts.yaml", "alerts-agent.yaml", "alerts-watchdog.yaml", "recording.yaml"}

func readRules(t *testing.T) []rule {
	t.Helper()
	var out []rule
	for _, file := range ruleFiles {
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
			continue // reported above
		}
		for _, l := range labelName.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(append([]string{"job", "instance"}, m.Labels...), l[1]) {
				t.Errorf("%s selects %s by %s, a label that it does not have", where, m.Name, l[1])
			}
		}
	}
	return names
}

func TestDashboards(t *testing.T) {
	t.Parallel()
	used, uids := map[string]bool{}, map[string]bool{}
	runtime := runtimeMetrics(t)
	for _, d := range readDashboards(t) {
		if d.UID == "" || len(d.UID) > 40 || uids[d.UID] || d.SchemaVersion != 41 || len(d.Inputs) > 0 || !slices.Contains(d.Tags, "locksteward") {
			t.Errorf("%s: uid %q, schema version %d, %d inputs, tags %v", d.file, d.UID, d.SchemaVersion, len(d.Inputs), d.Tags)
		}
		uids[d.UID] = true
		for _, name := range checkVariables(t, d) {
			used[name] = true
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			where := fmt.Sprintf("%s: panel %q", d.file, p.Title)
			if p.Datasource.UID != "${datasource}" {
				t.Errorf("%s has data source %q, want the variable", where, p.Datasource.UID)
			}
			if p.Description == "" || len(p.Targets) == 0 {
				t.Errorf("%s has no description or no query", where)
			}
			if p.FieldConfig.Defaults.Unit == "" || len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 {
				t.Errorf("%s has no unit or no thresholds", where)
			}
			for _, q := range p.Targets {
				names := checkNames(t, where, q.Expr)
				for _, n := range names {
					used[n] = true
				}
				if len(names) == 0 && !slices.ContainsFunc(wordy.FindAllString(q.Expr, -1), func(name string) bool { return runtime[name] }) {
					t.Errorf("%s has a query without a metric of ours: %s", where, q.Expr)
				}
				if !strings.Contains(q.Expr, `job=~"$job"`) {
					t.Errorf("%s ignores the variables: %s", where, q.Expr)
				}
				if found := fixedRange.FindString(q.Expr); found != "" {
					t.Errorf("%s has the fixed range %s: write $__rate_interval", where, found)
				}
			}
			checkLinks(t, where, p)
		}
	}
	for _, m := range exporter.Metrics() {
		if !used[m.Name] {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}

var (
	fixedRange = regexp.MustCompile(`\[[0-9][^]]*\]`)
	wordy      = regexp.MustCompile(`[a-z_]{4,}`)
)

// runtimeMetrics are the metrics of an agent that are not ours, and those that
// Prometheus itself has of each scrape.
func runtimeMetrics(t *testing.T) map[string]bool {
	t.Helper()
	_, text := ask(t, newClient(t, nil), "GET", "http://"+serve(t, exporter.Config{}, newExporter(t, exporter.Config{}), readyNow)+"/metrics")
	out := map[string]bool{"scrape_samples_scraped": true, "scrape_duration_seconds": true}
	for line := range strings.Lines(text) {
		if name := line[:strings.IndexAny(line, "{ ")]; !strings.HasPrefix(name, "locksteward_") {
			out[name] = true
		}
	}
	return out
}

// checkVariables returns the metrics that the variables ask for.
func checkVariables(t *testing.T, d dashboard) []string {
	t.Helper()
	var names []string
	v := d.Templating.List
	if len(v) < 5 || v[0].Type != "datasource" || v[1].Name != "job" || !v[1].Multi || v[2].Name != "target" || v[len(v)-1].Name != "console" {
		t.Errorf("%s: variables are %+v, want datasource, job, target, ..., console", d.file, v)
	}
	for _, v := range d.Templating.List {
		names = append(names, checkNames(t, d.file+" variable "+v.Name, v.Definition)...)
	}
	var ways []string
	for _, l := range d.Links {
		ways = append(ways, l.Type+l.URL)
	}
	wanted := []string{"link${console}/", "linkhttps://github.com/locksteward/locksteward/tree/main/docs/runbooks"}
	for _, other := range []string{"locksteward-fleet", "locksteward-class", "locksteward-agent"} {
		if other != d.UID {
			wanted = append(wanted, "link/d/"+other+"?${datasource:queryparam}&${job:queryparam}&${target:queryparam}")
		}
	}
	for _, way := range wanted {
		if !slices.Contains(ways, way) {
			t.Errorf("%s has no link %q: %v", d.file, way, ways)
		}
	}
	return names
}

// checkLayout fails for panels that lie on each other, and for ids and titles that
// two of them have.
func checkLayout(t *testing.T, d dashboard) {
	t.Helper()
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range flat(d.Panels) {
		if p.Title == "" || titles[p.Title] || ids[p.ID] {
			t.Errorf("%s: panel %q (id %d) has no title, or one or an id that another has", d.file, p.Title, p.ID)
		}
		ids[p.ID], titles[p.Title] = true, true
		checkPlaces(t, d.file, p.Panels)
	}
	checkPlaces(t, d.file, d.Panels)
}

// checkPlaces fails for panels that lie on each other, of those that are shown together.
func checkPlaces(t *testing.T, file string, panels []panel) {
	t.Helper()
	taken := map[[2]int]string{}
	for _, p := range panels {
		if p.GridPos.W < 1 || p.GridPos.H < 1 {
			t.Errorf("%s: panel %q has no size", file, p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("%s: panel %q lies on panel %q or beyond the edge", file, p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// checkLinks follows the links of a panel to runbooks, dashboards and pages of the
// console.
func checkLinks(t *testing.T, where string, p panel) {
	t.Helper()
	all := append(slices.Clone(p.Links), p.FieldConfig.Defaults.Links...)
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if property.ID != "links" {
				continue
			}
			var more []link
			if err := json.Unmarshal(property.Value, &more); err != nil {
				t.Fatal(err)
			}
			all = append(all, more...)
		}
	}
	for _, l := range all {
		page, runbook := strings.CutPrefix(l.URL, runbooks)
		switch {
		case runbook:
			if _, err := os.Stat(filepath.Join("../docs/runbooks", page)); err != nil {
				t.Errorf("%s leads to a runbook that is not there: %v", where, err)
			}
		case strings.HasPrefix(l.URL, "/d/locksteward-class?"), strings.HasPrefix(l.URL, "/d/locksteward-${__data.fields.page}?"), strings.HasPrefix(l.URL, "${console}/"):
		default:
			t.Errorf("%s leads to %s", where, l.URL)
		}
	}
}

const runbooks = "https://github.com/locksteward/locksteward/blob/main/docs/runbooks/"

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
	for _, d := range readDashboards(t) {
		fmt.Fprintf(&b, "\n### %s (`%s`)\n\n| row | panel | metrics |\n| --- | --- | --- |\n", strings.TrimPrefix(d.Title, "Locksteward / "), d.file)
		row := ""
		for _, p := range d.Panels {
			if p.Type == "row" {
				row = p.Title
				continue
			}
			var names []string
			for _, q := range p.Targets {
				names = append(names, checkNames(t, p.Title, q.Expr)...)
			}
			slices.Sort(names)
			shown := "" // of the process, or of Prometheus
			if len(names) > 0 {
				shown = "`" + strings.Join(slices.Compact(names), "`, `") + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", row, p.Title, shown)
			row = ""
		}
	}
	wantText := before + panelsBegin + b.String() + panelsEnd + after
	if *update {
		writeFile(t, file, wantText)
		return
	}
	if string(raw) != wantText {
		t.Errorf("%s is not what the dashboards show; run: go test ./exporter -run TestDashboardReadme -update", file)
	}
}

// TestProvisioning reads the examples of files that Grafana reads.
func TestProvisioning(t *testing.T) {
	t.Parallel()
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct{ UID, Type, URL string }
	}
	for file, to := range map[string]any{"dashboards/locksteward.yaml": &boards, "datasources/prometheus.yaml": &sources} {
		raw, err := os.ReadFile(filepath.Join(grafanaDir, "provisioning", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, to); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if boards.APIVersion != 1 || len(boards.Providers) != 1 || boards.Providers[0].Type != "file" || boards.Providers[0].Options.Path == "" {
		t.Errorf("dashboards: %+v", boards)
	}
	if sources.APIVersion != 1 || len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || sources.Datasources[0].URL == "" {
		t.Errorf("data sources: %+v", sources)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
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
		if r.Labels["severity"] == "" && !strings.Contains(r.Expr, "by (target, class, severity)") && !strings.Contains(r.Expr, "by (target, class, rule, severity)") {
			t.Errorf("%s has no severity, and takes none from its findings", r.Alert)
		}
		if strings.Contains(r.Expr, "locksteward_findings{") && !strings.Contains(r.Annotations["console_url"], "/findings?target={{ $labels.target | urlquery }}") {
			t.Errorf("%s does not lead to the findings on the console: %s", r.Alert, r.Annotations["console_url"])
		}
		if strings.Contains(r.Expr, "locksteward_findings{") {
			said := r.Annotations["summary"] + r.Annotations["description"]
			for _, part := range []string{"$labels.class", "$labels.target", "value }}"} {
				if !strings.Contains(said, part) {
					t.Errorf("%s is about locks and does not say %s: %s", r.Alert, part, said)
				}
			}
		}
		for _, name := range []string{"summary", "description"} {
			if r.Annotations[name] == "" || strings.Contains(r.Annotations[name], "(s)") {
				t.Errorf("%s has no %s, or one without a plural: %q", r.Alert, name, r.Annotations[name])
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
		for _, heading := range []string{
			"# " + r.Alert + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## What to check\n", "\n## How to fix\n", "\n## When it is false\n",
		} {
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
	for _, name := range []string{
		"DeadlockRisk", "LockWithoutTTL", "LockHeldTooLong", "LockLost", "RenewalFailing", "Deadlock", "ContentionHigh", "HolderDead", "Finding",
		"TargetDown", "SweepStale", "NotificationsStuck", "WatchBlind", "WatchMissed", "AgentDown", "ConfigReloadFailed", "StoreFailing", "BudgetPaused",
		"ReceiverFailing", "TemplateFailing", "HeartbeatMissing", "Watchdog", "CertificateEnds", "CredentialRefused",
		"StoreDamaged",
	} {
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

// fault: 25
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool := testprom.Program(t, "promtool")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = grafanaDir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	run(append([]string{"check", "rules"}, ruleFiles...)...)
	run("test", "rules", "alerts_test.yaml")

	// Every query of the dashboards parses.
	type recording struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var queries []recording
	for n, d := range readDashboards(t) {
		for _, p := range d.Panels {
			for i, q := range p.Targets {
				queries = append(queries, recording{fmt.Sprintf("dashboard%d:panel%d:query%d", n, p.ID, i), substitute(q.Expr)})
			}
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
	return strings.NewReplacer("$job", ".*", "$target", ".*", `class="$class"`, `class="orders"`, "$class", ".*", "$instance", ".*",
		"$__rate_interval", "1m", "$__range", "1m").Replace(expr)
}
