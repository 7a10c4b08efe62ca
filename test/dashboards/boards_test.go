package dashboards_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testprom"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

const (
	boardsDir = "../../grafana"
	// rateInterval stands for $__rate_interval: Grafana takes at least four scrapes.
	rateInterval = "10s"
)

// board is a dashboard as far as it is asked, drawn and judged.
type board struct {
	file, raw string
	Title     string
	Panels    []panel
	Links     []struct {
		Type        string
		URL         string
		IncludeVars bool
	}
	Annotations struct {
		List []struct {
			Name    string
			BuiltIn int
			Enable  bool
		}
	}
	Templating struct {
		List []struct {
			Name, Type, Definition string
		}
	}
	Time struct{ From, To string }
}

// all is every panel, those of closed rows too.
func (b board) all() []panel {
	var out []panel
	for _, p := range b.Panels {
		out = append(append(out, p), p.Panels...)
	}
	return out
}

type panel struct {
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Panels                   []panel // of a closed row
	Targets                  []struct {
		Expr, LegendFormat string
		Instant, Exemplar  bool
	}
	Links       []link
	FieldConfig struct {
		Defaults struct {
			Unit   string
			Color  struct{ Mode string }
			Min    *float64
			Links  []link
			Custom struct {
				DrawStyle, Stacking any
				AxisSoftMax         float64
			}
			NoValue    string
			Decimals   *int
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
			Mappings []struct {
				Options map[string]struct{ Text, Color string }
			}
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Options struct {
		TextMode string
		Legend   struct {
			SortBy   string
			SortDesc bool
		}
	}
	Transformations []struct {
		ID      string
		Options struct {
			IndexByName  map[string]int
			RenameByName map[string]string
			Sort         []struct{ Field string }
		}
	}
}

type link struct{ Title, URL string }

func readBoards(t *testing.T) []board {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(boardsDir, "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("dashboards: %v, %v; want three", files, err)
	}
	var out []board
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b := board{file: filepath.Base(file), raw: string(raw)}
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, b)
	}
	return out
}

// filled gives the variables of a query values as somebody chooses them: all
// targets, and all classes or one where only one can be chosen.
func filled(expr string, shown time.Duration) string {
	return strings.NewReplacer(`class=~"$class"`, `class=~".*"`, "$job", "locksteward", "$target", ".*", "$instance", ".*", "$class", class,
		"$__rate_interval", rateInterval, "$__range", fmt.Sprintf("%ds", int(shown.Seconds()))).Replace(expr)
}

// TestEveryPanelHasData runs an agent on a real Redis with applications that take,
// await, lose and leave behind locks, and asks a real Prometheus what each panel of
// each dashboard asks; then another one, which has native histograms and so no
// classic ones, and a third that has both.
func TestEveryPanelHasData(t *testing.T) {
	t.Parallel()
	testprom.Program(t, "prometheus")
	began := time.Now()
	s := newScene(t)
	options := testprom.Options{Targets: []string{s.metrics}, RuleFiles: ruleFiles(t)}
	prom := testprom.Start(t, options)
	options.Features = []string{"native-histograms", "exemplar-storage"}
	native := testprom.Start(t, options)
	variablesFill(t, prom)
	haveData(t, prom, "classic histograms", began)
	haveData(t, native, "native histograms", began)
	holdsAreNative(t, prom, native)
	exemplarsLeadToTraces(t, s, native)
	holdsShowOnce(t, s, options)
	if *pictures {
		draw(t, prom, began)
	}
}

var variableQuery = regexp.MustCompile(`^(?:label_values\((.*), (\w+)\)|query_result\((.*)\))$`)

// variablesFill wants a value for each variable, and the console's address for the one of the console.
func variablesFill(t *testing.T, prom *testprom.Server) {
	t.Helper()
	for _, b := range readBoards(t) {
		for _, v := range b.Templating.List {
			if v.Type != "query" {
				continue
			}
			q := variableQuery.FindStringSubmatch(v.Definition)
			if q == nil {
				t.Errorf("%s: variable %s has the query %q", b.file, v.Name, v.Definition)
				continue
			}
			expr, label, want := filled(q[1]+q[3], time.Minute), q[2], ""
			if q[3] != "" {
				label, want = "url", "https://locks.example"
			}
			testredis.Eventually(t, 45*time.Second, func() bool {
				found, err := prom.Instant(t.Context(), expr, time.Now())
				return err == nil && len(found) > 0 && found[0].Labels[label] != "" && (want == "" || found[0].Labels[label] == want)
			}, fmt.Sprintf("%s: variable %s has a value of %s", b.file, v.Name, expr))
		}
	}
}

// haveData wants data for each query of each panel.
func haveData(t *testing.T, prom *testprom.Server, with string, began time.Time) {
	t.Helper()
	asked := 0
	for _, b := range readBoards(t) {
		for _, p := range b.all() {
			for _, q := range p.Targets {
				asked++
				expr := filled(q.Expr, time.Minute)
				ok := func() bool { return hasData(t.Context(), prom, expr) }
				testredis.Eventually(t, 45*time.Second, ok, fmt.Sprintf("%s, %s: panel %q has data for %s", with, b.file, p.Title, expr))
			}
		}
	}
	t.Logf("%s: %d queries have data %s after the start", with, asked, time.Since(began).Round(100*time.Millisecond))
}

// hasData says whether a query gives at least one number, or a histogram that is not
// empty.
func hasData(ctx context.Context, prom *testprom.Server, expr string) bool {
	found, err := prom.Instant(ctx, expr, time.Now())
	return err == nil && slices.ContainsFunc(found, func(s testprom.Series) bool {
		return slices.ContainsFunc(s.Points, func(p testprom.Point) bool {
			return !math.IsNaN(p.Value) || p.Histogram != nil && p.Histogram.Count > 0
		})
	})
}

func ruleFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"alerts.yaml", "alerts-agent.yaml", "alerts-watchdog.yaml", "recording.yaml"} {
		out = append(out, filepath.Join(boardsDir, name))
	}
	return out
}
