package locksteward_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// promises are the parts of the product that promise something about a fault of docs/faults.md.
type promises struct{ library, agent bool }

// faultPage reads the tables of docs/faults.md.
func faultPage(t *testing.T) map[int]promises {
	t.Helper()
	page, err := os.ReadFile("docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	faults := map[int]promises{}
	row := regexp.MustCompile(`(?m)^\| (\d+) \|([^|\n]+)\|([^|\n]+)\|([^|\n]+)\|$`)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		number, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := faults[number]; twice {
			t.Errorf("docs/faults.md lists fault %d twice", number)
		}
		faults[number] = promises{library: strings.TrimSpace(m[3]) != "", agent: strings.TrimSpace(m[4]) != ""}
	}
	if rows := strings.Count(string(page), "\n| ") - strings.Count(string(page), "\n| # |"); len(faults) != rows {
		t.Errorf("docs/faults.md has %d rows, of which %d read \"| number | fault | library | agent |\"", rows, len(faults))
	}
	return faults
}

// Every promise of docs/faults.md has a test that names the fault in its comment ("fault: 14"): a test below lock/
// for a promise of the library, one elsewhere for a promise of the agent. Every comment names a fault of that page.
func TestFaultsHaveTests(t *testing.T) {
	t.Parallel()
	faults := faultPage(t)
	var library, agent []int
	for _, s := range sources(t) {
		ofTests := map[*ast.CommentGroup]bool{}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Doc != nil {
				ofTests[f.Doc] = true
			}
		}
		for _, group := range s.file.Comments {
			for _, line := range group.List {
				list, found := strings.CutPrefix(line.Text, "// fault: ")
				if !found {
					continue
				}
				if !ofTests[group] {
					t.Errorf("%s: %q is not in the comment of a test", s.set.Position(line.Pos()), line.Text)
				}
				for text := range strings.SplitSeq(list, ", ") {
					number, err := strconv.Atoi(text)
					if _, known := faults[number]; err != nil || !known {
						t.Errorf("%s: %q is not the number of a fault of docs/faults.md", s.set.Position(line.Pos()), text)
					}
					if s.dir == "lock" || strings.HasPrefix(s.dir, "lock/") {
						library = append(library, number)
					} else {
						agent = append(agent, number)
					}
				}
			}
		}
	}
	for number, promised := range faults {
		if promised.library && !slices.Contains(library, number) {
			t.Errorf("docs/faults.md: no test shows what the library does about fault %d", number)
		}
		if promised.agent && !slices.Contains(agent, number) {
			t.Errorf("docs/faults.md: no test shows what the agent does about fault %d", number)
		}
	}
}

// What docs/limits.md says about a fault is about one of docs/faults.md.
func TestLimitsNameRealFaults(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	faults := faultPage(t)
	for _, m := range regexp.MustCompile(`(?m)^- Fault (\d+) \((library|agent)\)`).FindAllStringSubmatch(string(page), -1) {
		number, err := strconv.Atoi(m[1])
		promised, known := faults[number]
		if err != nil || !known || m[2] == "library" && !promised.library || m[2] == "agent" && !promised.agent {
			t.Errorf("docs/limits.md: %q is not a promise of docs/faults.md", m[0])
		}
	}
}
