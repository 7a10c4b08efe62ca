package mutation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var pagePath = filepath.Join(root, "docs", "mutation-tests.md")

// The generated part of the page stands between these.
const (
	pageBegin = "<!-- written by go test ./lock/mutation -mutation -update -->\n"
	pageEnd   = "<!-- end -->\n"
	// never is the last run of a mutation that was not run yet.
	never = "never"
)

func readPage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func writePage(t *testing.T, results map[string]result) {
	t.Helper()
	text, err := newPage(t, results)
	if err == nil {
		err = os.WriteFile(pagePath, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newPage returns the page as it should be; mutations without a result keep their
// last run.
func newPage(t *testing.T, results map[string]result) (string, error) {
	t.Helper()
	old := readPage(t)
	before, rest, ok := strings.Cut(old, pageBegin)
	_, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("docs/mutation-tests.md: want the table between %q and %q", pageBegin, pageEnd)
	}
	last := lastRuns(old)
	var b strings.Builder
	b.WriteString(before + pageBegin)
	b.WriteString("| # | defect | published at | killed by | last run, seconds |\n|---|---|---|---|---|\n")
	for _, m := range mutations(t) {
		run, ok := last[m.id]
		if !ok {
			run = never
		}
		if r, ran := results[m.id]; ran {
			run = fmt.Sprintf("%s, %.1f", time.Now().UTC().Format(time.DateOnly), r.took.Seconds())
			if !r.killed {
				run = r.word() + " " + run
			}
		}
		b.WriteString(row(m.id, m.title, m.source, tests(m), run))
	}
	b.WriteString("\nWithout a mutation:\n\n| # | defect | published at | why not |\n|---|---|---|---|\n")
	for _, a := range absentees(t) {
		b.WriteString(row(a.id, a.title, a.source, a.why))
	}
	b.WriteString(pageEnd + after)
	return b.String(), nil
}

// tests names the tests that kill m, and where they are unless in lock.
func tests(m mutation) string {
	var list []string
	for _, name := range m.tests {
		list = append(list, "`"+name+"`")
	}
	text := strings.Join(list, ", ")
	if m.pkg != "./lock" {
		text += " (" + strings.TrimPrefix(m.pkg, "./") + ")"
	}
	if m.race {
		text += " under `-race`"
	}
	return text
}

func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// killedRun is what the last column has for a mutation that was killed.
var killedRun = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}, [0-9.]+$`)

// lastRuns reads the last column of the table, by mutation.
func lastRuns(page string) map[string]string {
	runs := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 {
			continue
		}
		id := strings.TrimPrefix(cells[0], "| ")
		if idForm.MatchString(id) {
			runs[id] = strings.TrimSuffix(cells[4], " |")
		}
	}
	return runs
}
