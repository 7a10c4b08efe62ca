package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/locksteward/locksteward/internal/faults"
)

// Outcomes of a test; a page has no other words for them.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped" // also: passed without getting to its call of Covers
	NotRun  = "not run"
)

// Results are the outcomes of a run by file and name of the test, and when the
// tests of a package were run last (UTC, to the minute), by package.
type Results struct {
	Outcome map[string]string
	When    map[string]string
}

// ID is the key of t in Results.Outcome.
func (t Test) ID() string { return t.File + " " + t.Name }

func (r Results) of(t Test) string {
	if o := r.Outcome[t.ID()]; o != "" {
		return o
	}
	return NotRun
}

// Coverage is one part of one row, with what covers it.
type Coverage struct {
	Row   faults.Row
	Part  faults.Part
	Tests []Test
	Gap   string // what Tests do not show of it, and why; empty if they show all
}

// Join puts the tests to the parts of the rows. Parts that nothing covers and
// that no gap explains, gaps that are none any more, those in part of what no test
// covers, and tests for a part that has nothing to do in a row are problems.
func Join(rows []faults.Row, gaps []faults.Gap, tests []Test) (all []Coverage, problems []string) {
	for _, r := range rows {
		for _, p := range r.Parts() {
			c := Coverage{Row: r, Part: p}
			for _, t := range tests {
				if slices.ContainsFunc(t.Rows, func(c Cover) bool { return c.Row == r.Number && slices.Contains(c.Parts, p) }) {
					c.Tests = append(c.Tests, t)
				}
			}
			some := false
			for _, g := range gaps {
				if g.Row == r.Number && g.Part == p {
					c.Gap, some = g.Why, g.Some
				}
			}
			switch {
			case len(c.Tests) == 0 && c.Gap == "":
				problems = append(problems, fmt.Sprintf("fault %d (%s): neither a test nor a reason why there is none", r.Number, p))
			case len(c.Tests) == 0 && some:
				problems = append(problems, fmt.Sprintf("fault %d (%s): covered in part, and by no test", r.Number, p))
			case len(c.Tests) > 0 && c.Gap != "" && !some:
				problems = append(problems, fmt.Sprintf("fault %d (%s): has a test, and a reason why there is none", r.Number, p))
			}
			all = append(all, c)
		}
		for _, t := range tests {
			for _, c := range t.Rows {
				if c.Row == r.Number && !slices.ContainsFunc(c.Parts, func(p faults.Part) bool { return slices.Contains(r.Parts(), p) }) {
					problems = append(problems, fmt.Sprintf("fault %d: %s in %s is of the %s, which has nothing to do there", r.Number, t.Name, t.File, c.Parts[0]))
				}
			}
		}
	}
	for _, g := range gaps {
		if !slices.ContainsFunc(all, func(c Coverage) bool { return c.Row.Number == g.Row && c.Part == g.Part }) {
			problems = append(problems, fmt.Sprintf("fault %d (%s): a gap where nothing is expected", g.Row, g.Part))
		}
	}
	return all, problems
}

const head = `# Fault matrix

What can go wrong around a lock, what is expected then of the library (` + "`lock/`" + `) and of the agent (all the rest), and the tests that put the fault in and look. Servers, proxies, disks and processes in most of them are real; some of the library and of the sender run against a server and a clock of the test's own, and one explores a model. What no test shows is in [limits.md](limits.md), with the reason.

` + "```sh" + `
make faults                            # runs all of these tests and writes this page
go test . -run FaultMatrix             # part of make test: the page names exactly the tests that there are
` + "```" + `

A test says itself which rows it covers (` + "`faults.Covers(t, 14)`" + `, package ` + "`internal/faults`" + `); a row is covered when the fault is injected and the expected behaviour asserted. Where tests show less than is expected the row is covered in part and says what is missing.
`

// Render returns docs/faults.md.
func Render(all []Coverage, results Results) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "\n%s\n", claim(all, results))
	section := ""
	for i := 0; i < len(all); {
		r := all[i].Row
		n := i + 1
		for n < len(all) && all[n].Row.Number == r.Number {
			n++
		}
		if r.Section != section {
			section = r.Section
			fmt.Fprintf(&b, "\n## %s\n\n| # | fault | expected | shown by |\n|---|---|---|---|\n", section)
		}
		var expected, shown []string
		for _, c := range all[i:n] {
			expected = append(expected, fmt.Sprintf("**%s**: %s", c.Part, r.Expect(c.Part)))
			shown = append(shown, fmt.Sprintf("**%s**: %s", c.Part, c.shown(results)))
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", r.Number, r.Fault, strings.Join(expected, "<br>"), strings.Join(shown, "<br>"))
		i = n
	}
	b.WriteString(summary(all, results))
	return b.String()
}

func (c Coverage) shown(results Results) string {
	if len(c.Tests) == 0 {
		return "not covered: " + c.Gap + " ([limits.md](limits.md#faults-that-are-not-covered))"
	}
	var list []string
	for _, t := range c.Tests {
		list = append(list, fmt.Sprintf("[%s](../%s) %s", t.Name, t.File, results.of(t)))
	}
	shown := strings.Join(list, ", ")
	if c.Gap != "" {
		shown = "in part, by " + shown + ". Not shown: " + c.Gap + " ([limits.md](limits.md#faults-that-are-not-covered))"
	}
	return shown
}

// claim says how much of the rows is shown by tests that have passed. A row of which
// one part has no test, or of which one test has not passed, is not among them.
func claim(all []Coverage, results Results) string {
	rows, failing, open := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range all {
		n := c.Row.Number
		rows[n] = true
		open[n] = open[n] || c.Gap != ""
		failing[n] = failing[n] || len(c.Tests) == 0 ||
			slices.ContainsFunc(c.Tests, func(t Test) bool { return results.of(t) != Passed })
	}
	whole, partly := 0, 0
	for n := range rows {
		switch {
		case failing[n]:
		case open[n]:
			partly++
		default:
			whole++
		}
	}
	return fmt.Sprintf("Tests that pass cover %d of the %d rows: %d in full, and %d in part, where less is done or shown than is expected.",
		whole+partly, len(rows), whole, partly)
}

// summary counts rows and tests and says when the packages were run.
func summary(all []Coverage, results Results) string {
	covered := map[int]bool{}
	open := map[int]bool{}
	seen := map[string]Test{}
	for _, c := range all {
		if c.Gap != "" {
			open[c.Row.Number] = true
		}
		if len(c.Tests) > 0 {
			covered[c.Row.Number] = true
		}
		for _, t := range c.Tests {
			seen[t.ID()] = t
		}
	}
	rows, whole, partly := map[int]bool{}, 0, 0
	for _, c := range all {
		rows[c.Row.Number] = true
	}
	for n := range rows {
		switch {
		case covered[n] && !open[n]:
			whole++
		case covered[n]:
			partly++
		}
	}
	count, byPackage := map[string]int{}, map[string]map[string]int{}
	for _, t := range seen {
		o := results.of(t)
		count[o]++
		if byPackage[t.Package()] == nil {
			byPackage[t.Package()] = map[string]int{}
		}
		byPackage[t.Package()][o]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Count\n\nCovered: %d of %d rows in full, %d in part, %d not. Tests: %s.\n\n",
		whole, len(rows), partly, len(rows)-whole-partly, tally(count))
	b.WriteString("| package | tests | last run (UTC) |\n|---|---|---|\n")
	names := make([]string, 0, len(byPackage))
	for p := range byPackage {
		names = append(names, p)
	}
	slices.Sort(names)
	for _, p := range names {
		when := results.When[p]
		if when == "" {
			when = "never"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p, tally(byPackage[p]), when)
	}
	return b.String()
}

func tally(count map[string]int) string {
	total := 0
	var list []string
	for _, o := range []string{Passed, Failed, Skipped, NotRun} {
		total += count[o]
		if count[o] > 0 {
			list = append(list, fmt.Sprintf("%d %s", count[o], o))
		}
	}
	return fmt.Sprintf("%d, %s", total, strings.Join(list, ", "))
}

var (
	shownTest = regexp.MustCompile(`\[(Test\w+)\]\(\.\./([^)]+)\) (passed|failed|skipped)`)
	shownRun  = regexp.MustCompile(`(?m)^\| (\S+) \| \d[^|]* \| (\d{4}-\d\d-\d\d \d\d:\d\d) \|$`)
)

// Parse reads the outcomes back from a page.
func Parse(page string) Results {
	r := Results{Outcome: map[string]string{}, When: map[string]string{}}
	for _, m := range shownTest.FindAllStringSubmatch(page, -1) {
		r.Outcome[Test{Name: m[1], File: m[2]}.ID()] = m[3]
	}
	for _, m := range shownRun.FindAllStringSubmatch(page, -1) {
		r.When[m[1]] = m[2]
	}
	return r
}
