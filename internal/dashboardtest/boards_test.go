package dashboardtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testprom"
	"github.com/locksteward/locksteward/internal/testredis"
)

const (
	boardsDir = "../../grafana"
	// rateInterval stands for $__rate_interval: Grafana takes at least four scrapes.
	rateInterval = "10s"
)

// board is a dashboard as far as it is asked and drawn.
type board struct {
	file   string
	Title  string
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct {
		Expr, LegendFormat string
		Instant            bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Custom     struct{ DrawStyle, Stacking any }
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
	}
	Options         struct{ TextMode string }
	Transformations []struct {
		Options struct {
			IndexByName  map[string]int
			RenameByName map[string]string
		}
	}
}

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
		b := board{file: filepath.Base(file)}
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, b)
	}
	return out
}

// filled gives the variables of a query values as somebody chooses them: all
// targets, and one class.
func filled(expr string, shown time.Duration) string {
	return strings.NewReplacer("$job", "locksteward", "$target", ".*", "$instance", ".*", "$class", class,
		"$__rate_interval", rateInterval, "$__range", fmt.Sprintf("%ds", int(shown.Seconds()))).Replace(expr)
}

// TestEveryPanelHasData runs an agent on a real Redis with applications that take,
// await, lose and leave behind locks, and asks a real Prometheus what each panel of
// each dashboard asks.
func TestEveryPanelHasData(t *testing.T) {
	t.Parallel()
	testprom.Program(t, "prometheus")
	began := time.Now()
	s := newScene(t)
	prom := testprom.Start(t, testprom.Options{Targets: []string{s.metrics}, RuleFiles: ruleFiles(t)})
	asked := 0
	for _, b := range readBoards(t) {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				asked++
				expr := filled(q.Expr, time.Minute)
				ok := func() bool { return hasData(t.Context(), prom, expr) }
				testredis.Eventually(t, 45*time.Second, ok, fmt.Sprintf("%s: panel %q has data for %s", b.file, p.Title, expr))
			}
		}
	}
	t.Logf("%d queries have data %s after the start", asked, time.Since(began).Round(100*time.Millisecond))
	if *pictures {
		draw(t, prom, began)
	}
}

// hasData says whether a query gives at least one number.
func hasData(ctx context.Context, prom *testprom.Server, expr string) bool {
	found, err := prom.Instant(ctx, expr, time.Now())
	return err == nil && slices.ContainsFunc(found, func(s testprom.Series) bool {
		return slices.ContainsFunc(s.Points, func(p testprom.Point) bool { return !math.IsNaN(p.Value) })
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
