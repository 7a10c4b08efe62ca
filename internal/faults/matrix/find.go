package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/locksteward/locksteward/internal/faults"
)

// Test is a test function that covers rows.
type Test struct {
	Name string
	File string // from the root of the module, with slashes
	Rows []Cover
}

// Package returns the folder of t from the root of the module, with slashes.
func (t Test) Package() string { return path.Dir(t.File) }

// Cover is a row that a test covers, for these parts.
type Cover struct {
	Row   int
	Parts []faults.Part
}

// Find reads the test files of the module at root and returns the tests that
// cover rows, by file and name. A call that cannot be read is an error.
func Find(root string) ([]Test, error) {
	var tests []Test
	var problems []error
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != root && (skipped(d.Name()) || nested(p)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(p)
		if err != nil || !bytes.Contains(raw, []byte("internal/faults\"")) {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if path.Dir(filepath.ToSlash(rel)) == "internal/faults" {
			return nil // its own tests, which call Covers to see what it does
		}
		found, err := inFile(filepath.ToSlash(rel), raw)
		if err != nil {
			problems = append(problems, err)
		}
		tests = append(tests, found...)
		return nil
	})
	slices.SortFunc(tests, func(a, b Test) int {
		return strings.Compare(a.File+" "+a.Name, b.File+" "+b.Name)
	})
	return tests, errors.Join(append(problems, err)...)
}

func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "bin" || name == "data" || name == "testdata"
}

func nested(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// inFile returns the covering tests of one file.
func inFile(name string, raw []byte) ([]Test, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, raw, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var tests []Test
	var problems []error
	for _, d := range file.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		isTest := isFunc && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain"
		t := Test{File: name}
		if isTest {
			t.Name = f.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			both, ours := covers(call)
			if !ours {
				return true
			}
			rows, err := literals(call.Args[min(1, len(call.Args)):])
			switch {
			case !isTest:
				err = errors.New("outside a test function, where nobody finds it")
			case err == nil && len(rows) == 0:
				err = errors.New("names no row")
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: faults.Covers: %w", set.Position(call.Pos()), err))
			}
			for _, row := range rows {
				t.add(row, parts(t.Package(), both))
			}
			return true
		})
		if len(t.Rows) > 0 && isTest {
			tests = append(tests, t)
		}
	}
	return tests, errors.Join(problems...)
}

// covers says whether call is one of faults.Covers, and whether for both parts.
func covers(call *ast.CallExpr) (both, ours bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false, false
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "faults" {
		return false, false
	}
	both = sel.Sel.Name == "CoversBoth"
	return both, both || sel.Sel.Name == "Covers"
}

func literals(args []ast.Expr) ([]int, error) {
	var out []int
	for _, a := range args {
		lit, ok := a.(*ast.BasicLit)
		if !ok || lit.Kind != token.INT {
			return out, errors.New("a row is not a literal number")
		}
		n, err := strconv.Atoi(lit.Value)
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(faults.Rows(), func(r faults.Row) bool { return r.Number == n }) {
			return out, fmt.Errorf("no fault has the number %d", n)
		}
		out = append(out, n)
	}
	return out, nil
}

// parts returns whose duty a test in dir shows.
func parts(dir string, both bool) []faults.Part {
	switch {
	case both:
		return []faults.Part{faults.Library, faults.Agent}
	case dir == "lock" || strings.HasPrefix(dir, "lock/"):
		return []faults.Part{faults.Library}
	default:
		return []faults.Part{faults.Agent}
	}
}

func (t *Test) add(row int, p []faults.Part) {
	for i, c := range t.Rows {
		if c.Row == row {
			for _, part := range p {
				if !slices.Contains(c.Parts, part) {
					t.Rows[i].Parts = append(t.Rows[i].Parts, part)
				}
			}
			return
		}
	}
	t.Rows = append(t.Rows, Cover{Row: row, Parts: p})
}
