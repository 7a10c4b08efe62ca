package dashboards_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRulesOfDashboards judges the JSON by what made the dashboards hard to read when
// they were opened in a Grafana.
func TestRulesOfDashboards(t *testing.T) {
	t.Parallel()
	for _, b := range readBoards(t) {
		t.Run(b.file, func(t *testing.T) {
			t.Parallel()
			judgeBoard(t, b)
			open, closed := 0, 0
			for _, top := range b.Panels {
				if top.Type != "row" {
					open++
				}
				closed += len(top.Panels)
				ofRedis := strings.HasPrefix(top.Title, "Redis") // the row about servers of that kind
				for _, p := range append([]panel{top}, top.Panels...) {
					if said := p.Title + p.Description; !ofRedis && oneStore.MatchString(said) {
						t.Errorf("panel %q names one kind of store, or keys where locks are meant: %s", p.Title, said)
					}
					judgePanel(t, p)
				}
			}
			t.Logf("%d panels are open, %d more in closed rows", open, closed)
		})
	}
}

var oneStore = regexp.MustCompile(`Redis|[Ll]ock keys|SCAN|SETNX`)

func judgeBoard(t *testing.T, b board) {
	t.Helper()
	for _, a := range b.Annotations.List {
		if a.BuiltIn == 0 && a.Enable {
			t.Errorf("annotation %q is on at the start: it paints every graph while anything fires", a.Name)
		}
	}
	for _, l := range b.Links {
		if l.Type == "dashboards" || l.IncludeVars {
			t.Errorf("link %q carries all variables: class=All opens an empty page of one class", l.URL)
		}
	}
	if b.Time.From != "now-1h" || b.Time.To != "now" {
		t.Errorf("shows %v, want the last hour", b.Time)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if strings.Contains(b.raw, host) {
			t.Errorf("leads to %s, which is the machine of the viewer", host)
		}
	}
	if strings.Contains(b.raw, "var-class=All") || strings.Contains(b.raw, "${class:queryparam}") {
		t.Error("a link carries class=All, which opens an empty page")
	}
	first := slices.IndexFunc(b.Panels, func(p panel) bool { return p.Type == "timeseries" || p.Type == "state-timeline" })
	for _, title := range []string{"Firing now", "Locks held longest"} {
		i := slices.IndexFunc(b.Panels, func(p panel) bool { return p.Title == title })
		if b.file == "locksteward-agent.json" {
			continue // is not about locks
		}
		if i < 0 || i > first || b.Panels[i].GridPos.W < 12 {
			t.Errorf("table %q is not above the graphs, half of the page wide", title)
		}
	}
}

func judgePanel(t *testing.T, p panel) {
	t.Helper()
	d := p.FieldConfig.Defaults
	if p.Type != "row" && !strings.Contains(d.NoValue, " ") {
		t.Errorf("panel %q shows %q without data: write a sentence", p.Title, d.NoValue)
	}
	switch p.Type {
	case "stat":
		if s := d.Thresholds.Steps; s[0].Value != nil || s[0].Color == "green" {
			t.Errorf("panel %q is %s while nothing is known", p.Title, s[0].Color)
		}
	case "timeseries":
		if d.Unit == "short" {
			t.Errorf("panel %q shortens its counts to thousands, and whole ones lose their digits: unit locale", p.Title)
		}
		if d.Unit == "locale" && (d.Min == nil || *d.Min != 0 || d.Decimals == nil || *d.Decimals != 0 || d.Custom.AxisSoftMax != 1) {
			t.Errorf("panel %q counts: its axis begins at 0, ends at 1 or more and has whole numbers", p.Title)
		}
		if l := p.Options.Legend; l.SortBy != "Max" || !l.SortDesc {
			t.Errorf("panel %q has its legend sorted by %q, want Max", p.Title, l.SortBy)
		}
	case "state-timeline":
		if d.Color.Mode != "palette-classic" || len(d.Mappings) == 0 {
			t.Errorf("panel %q has color mode %q and %d mappings: merged states show the texts of mappings with palette-classic alone", p.Title, d.Color.Mode, len(d.Mappings))
		}
	case "table":
		judgeTable(t, p)
	}
	for _, q := range p.Targets {
		if strings.Contains(q.Expr, "increase(") && p.Type != "heatmap" && !strings.HasPrefix(q.Expr, "round(") {
			t.Errorf("panel %q counts in fractions: round(%s)", p.Title, q.Expr)
		}
		if n := strings.Count(q.Expr, "histogram_quantile("); n != strings.Count(q.Expr, " >= 0") {
			t.Errorf("panel %q has NaN where no hold ended: compare each quantile with >= 0: %s", p.Title, q.Expr)
		}
		if len(q.LegendFormat) > len("{{receiver}} {{outcome}} {{reason}}") {
			t.Errorf("panel %q has a long legend: %s", p.Title, q.LegendFormat)
		}
	}
}

// judgeTable wants the rows in the order of severity, in its colours, and every link to
// lead to something of a finding that has no class.
func judgeTable(t *testing.T, p panel) {
	t.Helper()
	severe, bySeverity := false, false
	for _, tr := range p.Transformations {
		bySeverity = bySeverity || tr.ID == "sortBy" && tr.Options.Sort[0].Field == "order"
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if o.Matcher.Options == "severity" && property.ID == "mappings" {
				severe = true
				checkSeverities(t, p.Title, property.Value)
			}
			if strings.Contains(p.Targets[0].Expr, "locksteward_findings") && strings.Contains(string(property.Value), "/d/locksteward-class") {
				t.Errorf("panel %q leads findings without a class to an empty page: %s", p.Title, property.Value)
			}
		}
	}
	if severe != bySeverity || severe != strings.Contains(p.Targets[0].Expr, "locksteward_findings") {
		t.Errorf("panel %q shows findings and is not sorted by severity, or has not its colours", p.Title)
	}
}

func checkSeverities(t *testing.T, title string, raw json.RawMessage) {
	t.Helper()
	var mappings []struct {
		Options map[string]struct{ Color string }
	}
	if err := json.Unmarshal(raw, &mappings); err != nil {
		t.Fatal(err)
	}
	for severity, color := range map[string]string{"critical": "red", "warning": "orange", "info": "blue"} {
		if got := mappings[0].Options[severity].Color; got != color {
			t.Errorf("panel %q shows %s in %q, want %s", title, severity, got, color)
		}
	}
}
