package matrix_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/internal/faults/matrix"
)

var (
	full   = flag.Bool("matrix", false, "run every covering test and note the outcomes")
	only   = flag.String("matrix.only", ".", "run those of the packages that match this expression alone")
	again  = flag.Bool("matrix.again", false, "run only those that have not passed in the last run")
	update = flag.Bool("update", false, "write docs/faults.md anew, with the outcomes it has")
)

const root = "../../.."

var page = filepath.Join(root, "docs", "faults.md")

// coverage returns the joined rows; a problem with them fails t.
func coverage(t *testing.T) ([]matrix.Coverage, []matrix.Test) {
	t.Helper()
	tests, err := matrix.Find(root)
	if err != nil {
		t.Error(err)
	}
	all, problems := matrix.Join(faults.Rows(), faults.Gaps(), tests)
	for _, p := range problems {
		t.Error(p)
	}
	return all, tests
}

func read(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(raw)
}

func write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestMatrix runs what covers a row, package by package, and writes the page
// after each, so that a run that is stopped has done something.
func TestMatrix(t *testing.T) {
	if *update && !*full {
		all, _ := coverage(t)
		write(t, matrix.Render(all, matrix.Parse(read(t))))
		return
	}
	if !*full {
		t.Skip("runs with -matrix (make faults)")
	}
	expr, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	all, tests := coverage(t)
	byPackage := map[string][]matrix.Test{}
	last := matrix.Parse(read(t))
	for _, test := range tests {
		if *again && last.Outcome[test.ID()] == matrix.Passed {
			continue
		}
		if expr.MatchString(test.Package()) {
			byPackage[test.Package()] = append(byPackage[test.Package()], test)
		}
	}
	if len(byPackage) == 0 && !*again {
		t.Fatalf("no package that covers a row matches %s", *only)
	}
	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		began := time.Now()
		outcomes, err := matrix.Run(t.Context(), root, byPackage[pkg], os.Stderr)
		if err != nil {
			t.Errorf("%s: %v", pkg, err)
		}
		results := matrix.Parse(read(t))
		maps.Copy(results.Outcome, outcomes)
		results.When[pkg] = began.UTC().Format("2006-01-02 15:04")
		write(t, matrix.Render(all, results))
		passed := 0
		for id, o := range outcomes {
			if o == matrix.Passed {
				passed++
				continue
			}
			t.Errorf("%s: %s", id, o)
		}
		fmt.Fprintf(os.Stderr, "%s: %d of %d passed in %.0f s\n", pkg, passed, len(outcomes), time.Since(began).Seconds())
	}
}

func TestRowsAreNumbered(t *testing.T) {
	t.Parallel()
	for i, r := range faults.Rows() {
		if r.Number != i+1 {
			t.Errorf("row %d has the number %d", i+1, r.Number)
		}
		if r.Fault == "" || r.Section == "" || len(r.Parts()) == 0 {
			t.Errorf("row %d is incomplete: %+v", r.Number, r)
		}
	}
	if n := len(faults.Rows()); n != 84 {
		t.Errorf("%d rows, want 84", n)
	}
}

// What a page says is what is read back from it.
func TestPageIsReadBack(t *testing.T) {
	t.Parallel()
	a := matrix.Test{Name: "TestA", File: "lock/a_test.go"}
	b := matrix.Test{Name: "TestB", File: "scanner/b_test.go"}
	rows := []faults.Row{{Number: 1, Section: "S", Fault: "f", Library: "l", Agent: "a"}, {Number: 2, Section: "S", Fault: "g", Agent: "a"}}
	rows = append(rows, faults.Row{Number: 3, Section: "S", Fault: "h", Agent: "a"})
	a.Rows = []matrix.Cover{{Row: 1, Parts: []faults.Part{faults.Library}}}
	b.Rows = []matrix.Cover{{Row: 1, Parts: []faults.Part{faults.Agent}}, {Row: 3, Parts: []faults.Part{faults.Agent}}}
	all, problems := matrix.Join(rows, []faults.Gap{
		{Row: 2, Part: faults.Agent, Why: "because"}, {Row: 3, Part: faults.Agent, Some: true, Why: "the rest."},
	}, []matrix.Test{a, b})
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	want := matrix.Results{
		Outcome: map[string]string{a.ID(): matrix.Passed, b.ID(): matrix.Failed},
		When:    map[string]string{"lock": "2026-11-21 22:40"},
	}
	text := matrix.Render(all, want)
	if got := matrix.Parse(text); !maps.Equal(got.Outcome, want.Outcome) || !maps.Equal(got.When, want.When) {
		t.Errorf("read back %v", got)
	}
	for _, part := range []string{
		"Tests that pass cover 0 of the 3 rows: 0 in full,",
		"| 1 | f | **library**: l<br>**agent**: a | **library**: [TestA](../lock/a_test.go) passed<br>**agent**: [TestB](../scanner/b_test.go) failed |",
		"not covered: because",
		"| 3 | h | **agent**: a | **agent**: in part, by [TestB](../scanner/b_test.go) failed. Not shown: the rest. (",
		"Covered: 1 of 3 rows in full, 1 in part, 1 not. Tests: 2, 1 passed, 1 failed.",
		"| scanner | 1, 1 failed | never |",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %q:\n%s", part, text)
		}
	}
}

// The page claims a row only where all of its tests have passed, and in full only
// where nothing of it is a gap.
func TestPageClaimsWhatHasPassed(t *testing.T) {
	t.Parallel()
	rows := []faults.Row{{Number: 1, Library: "l", Agent: "a"}, {Number: 2, Agent: "a"}, {Number: 3, Agent: "a"}}
	tests := []matrix.Test{
		{Name: "TestA", File: "lock/a_test.go", Rows: []matrix.Cover{{Row: 1, Parts: []faults.Part{faults.Library}}}},
		{Name: "TestB", File: "scanner/b_test.go", Rows: []matrix.Cover{
			{Row: 1, Parts: []faults.Part{faults.Agent}},
			{Row: 2, Parts: []faults.Part{faults.Agent}},
		}},
	}
	all, problems := matrix.Join(rows, []faults.Gap{
		{Row: 2, Part: faults.Agent, Some: true, Why: "the rest."}, {Row: 3, Part: faults.Agent, Why: "because"},
	}, tests)
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	outcome := map[string]string{tests[0].ID(): matrix.Passed, tests[1].ID(): matrix.Passed}
	for last, want := range map[string]string{
		matrix.Passed:  "cover 2 of the 3 rows: 1 in full, and 1 in part",
		matrix.Skipped: "cover 1 of the 3 rows: 0 in full, and 1 in part",
	} {
		outcome[tests[0].ID()] = last
		if text := matrix.Render(all, matrix.Results{Outcome: outcome}); !strings.Contains(text, want) {
			t.Errorf("with one %s the page lacks %q:\n%s", last, want, text)
		}
	}
}

func TestJoinFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	row := []faults.Row{{Number: 1, Section: "S", Fault: "f", Agent: "a"}}
	agent := matrix.Test{Name: "TestA", File: "scanner/a_test.go", Rows: []matrix.Cover{{Row: 1, Parts: []faults.Part{faults.Agent}}}}
	library := matrix.Test{Name: "TestA", File: "lock/a_test.go", Rows: []matrix.Cover{{Row: 1, Parts: []faults.Part{faults.Library}}}}
	gap := faults.Gap{Row: 1, Part: faults.Agent, Why: "because"}
	some := faults.Gap{Row: 1, Part: faults.Agent, Some: true, Why: "the rest"}
	for name, tc := range map[string]struct {
		gaps  []faults.Gap
		tests []matrix.Test
		want  string
	}{
		"nothing":             {nil, nil, "neither a test nor a reason"},
		"both":                {[]faults.Gap{gap}, []matrix.Test{agent}, "has a test, and a reason"},
		"in part by nothing":  {[]faults.Gap{some}, nil, "in part, and by no test"},
		"another part":        {[]faults.Gap{gap}, []matrix.Test{library}, "nothing to do there"},
		"gap of nothing":      {[]faults.Gap{gap, {Row: 1, Part: faults.Library, Why: "x"}}, nil, "a gap where nothing is expected"},
		"gap of no row there": {[]faults.Gap{gap, {Row: 9, Part: faults.Agent, Why: "x"}}, nil, "a gap where nothing is expected"},
	} {
		_, problems := matrix.Join(row, tc.gaps, tc.tests)
		if len(problems) != 1 || !strings.Contains(problems[0], tc.want) {
			t.Errorf("%s: problems %q, want %q", name, problems, tc.want)
		}
	}
	for _, gaps := range [][]faults.Gap{nil, {some}} {
		if _, problems := matrix.Join(row, gaps, []matrix.Test{agent}); len(problems) != 0 {
			t.Error(problems)
		}
	}
}
