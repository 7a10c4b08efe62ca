package locksteward_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/internal/faults/matrix"
)

// docs/faults.md names exactly the tests that say they cover a fault, and every
// fault that none covers has its reason there and in docs/limits.md. Nothing is
// run here: the outcomes are those of the last make faults.
func TestFaultMatrixIsInStep(t *testing.T) {
	t.Parallel()
	tests, err := matrix.Find(".")
	if err != nil {
		t.Error(err)
	}
	all, problems := matrix.Join(faults.Rows(), faults.Gaps(), tests)
	for _, p := range problems {
		t.Error(p)
	}
	page, err := os.ReadFile("docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	results := matrix.Parse(string(page))
	got, want := strings.Split(string(page), "\n"), strings.Split(matrix.Render(all, results), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("docs/faults.md line %d is out of step with the sources: run make faults (or go test ./internal/faults/matrix -update, and run the new tests)\n got %s\nwant %s",
				i+1, at(got, i), at(want, i))
			break
		}
	}
	for _, test := range tests {
		if results.Outcome[test.ID()] != matrix.Passed {
			t.Errorf("%s in %s has not passed in the last make faults: %q", test.Name, test.File, results.Outcome[test.ID()])
		}
	}
}

func TestFaultsThatAreNotCoveredAreLimits(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## Faults that are not covered\n")
	if !found {
		t.Fatal("docs/limits.md has no section \"Faults that are not covered\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	lines := strings.Split(section, "\n")
	for _, g := range faults.Gaps() {
		line := fmt.Sprintf("- Fault %d (%s): %s", g.Row, g.Part, g.Why)
		if !slices.Contains(lines, line) {
			t.Errorf("docs/limits.md lacks the line %q", line)
		}
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "- Fault ") {
			continue
		}
		if !slices.ContainsFunc(faults.Gaps(), func(g faults.Gap) bool {
			return line == fmt.Sprintf("- Fault %d (%s): %s", g.Row, g.Part, g.Why)
		}) {
			t.Errorf("docs/limits.md has a limit that is none: %q", line)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
