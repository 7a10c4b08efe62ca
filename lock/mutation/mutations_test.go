// Package mutation keeps published defects of lock libraries as mutations of package
// lock, one file each, and shows that the suite of package lock kills every one.
// It has no code of its own but tests.
//
//	go test ./lock/mutation                                  the mutations still fit the code, and docs/mutation-tests.md them
//	go test ./lock/mutation -mutation -timeout 60m -v        builds and runs each mutation
//	go test ./lock/mutation -mutation -v -run /^B7$          one of them
//	go test ./lock/mutation -mutation -update -timeout 60m   and notes that in docs/mutation-tests.md
//
// A mutation is applied by go test -overlay: the tree is never touched. Killed
// means that it compiles and that each test it names fails, with the words it
// gives: neither a compiler's error, nor a panic, nor a test that hangs is a kill.
// The same tests must pass without any mutation.
package mutation

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	full   = flag.Bool("mutation", false, "build and run every mutation")
	update = flag.Bool("update", false, "write the table of docs/mutation-tests.md anew")
)

// root is the root of the module, from here.
const root = "../.."

// The cheap part: every mutation can be applied to the present code, and names
// tests that are there.
func TestMutationsFitTheCode(t *testing.T) {
	t.Parallel()
	functions := map[string][]string{} // by package
	for _, m := range mutations(t) {
		if _, seen := functions[m.pkg]; !seen {
			functions[m.pkg] = testFunctions(t, m.pkg)
		}
		for _, name := range m.tests {
			top, _, _ := strings.Cut(name, "/")
			if !slices.Contains(functions[m.pkg], top) {
				t.Errorf("%s: %s has no test %s", m.id, m.pkg, top)
			}
		}
		files, err := m.apply(os.ReadFile)
		if err != nil {
			t.Error(err)
		}
		for name, text := range files {
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
				t.Errorf("%s: mutated: %v", m.id, err)
			}
		}
	}
}

// testFunctions returns the names of the tests of a package, ./ from the root.
func testFunctions(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// Every published defect is here, or it is said why not.
func TestEveryRowIsHere(t *testing.T) {
	t.Parallel()
	here := map[int]bool{}
	for _, m := range mutations(t) {
		here[m.row] = true
	}
	for _, a := range absentees(t) {
		if here[a.row] {
			t.Errorf("%s: has a mutation too", a.id)
		}
		here[a.row] = true
	}
	for row := 1; row <= rows; row++ {
		if !here[row] {
			t.Errorf("B%d: neither a mutation nor a reason why there is none", row)
		}
	}
}

// TestMutations builds every mutation and runs its tests, two at a time.
func TestMutations(t *testing.T) {
	if !*full {
		t.Skip("runs with -mutation (make mutation)")
	}
	list := mutations(t)
	var mu sync.Mutex
	results := map[string]result{}
	began := time.Now()
	t.Cleanup(func() {
		summarise(t, list, results, time.Since(began))
		if *update {
			writePage(t, results)
		}
	})
	seats := make(chan struct{}, 2)
	for _, m := range list {
		t.Run(m.id, func(t *testing.T) {
			t.Parallel()
			seats <- struct{}{}
			defer func() { <-seats }()
			r := m.run(t)
			mu.Lock()
			results[m.id] = r
			mu.Unlock()
			switch r.word() {
			case broken:
				t.Errorf("%s: %s: %s\n%s", m.id, m.title, r.broken, indent(r.output))
			case survived:
				t.Errorf("%s: %s: %s in %s: %s does not fail\n%s", m.id, m.title, survived, seconds(r.took), r.passed, indent(r.output))
			default:
				t.Logf("%s: killed in %s by %s: %s", m.id, seconds(r.took), r.by, r.words)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		seats <- struct{}{}
		defer func() { <-seats }()
		control(t, list)
	})
}

// summarise logs a line for each mutation that was run.
func summarise(t *testing.T, list []mutation, results map[string]result, took time.Duration) {
	killed := 0
	for _, m := range list {
		r, ran := results[m.id]
		if !ran {
			continue
		}
		if r.killed {
			killed++
		}
		t.Logf("%-5s %-8s %7s  %s", m.id, r.word(), seconds(r.took), m.title)
	}
	t.Logf("%d of %d mutations killed in %s", killed, len(results), seconds(took))
}

// The table of docs/mutation-tests.md is that of the mutations.
func TestPage(t *testing.T) {
	if *update && !*full {
		writePage(t, nil)
	}
	want, err := newPage(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if have := readPage(t); have != want {
		t.Errorf("docs/mutation-tests.md does not list the mutations as they are (hint: go test ./lock/mutation -update)\n%s", firstDifference(have, want))
	}
	last := lastRuns(readPage(t))
	for _, m := range mutations(t) {
		if run := last[m.id]; !killedRun.MatchString(run) {
			t.Errorf("%s: last run: %s (hint: go test ./lock/mutation -mutation -update -run '/^%s$|Page')", m.id, run, m.id)
		}
	}
}

func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for n := range max(len(a), len(b)) {
		var x, y string
		if n < len(a) {
			x = a[n]
		}
		if n < len(b) {
			y = b[n]
		}
		if x != y {
			return fmt.Sprintf("line %d\nhave %s\nwant %s", n+1, x, y)
		}
	}
	return "no difference"
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// stem is a file's name without folder and extension.
func stem(name string) string {
	return strings.TrimSuffix(path.Base(filepath.ToSlash(name)), path.Ext(name))
}
