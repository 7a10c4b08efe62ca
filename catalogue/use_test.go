package catalogue

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSentencesAreUsed holds the program to the catalogue: each message that it makes is
// in the catalogue and has that many arguments, and no sentence is left over.
func TestSentencesAreUsed(t *testing.T) {
	t.Parallel()
	written := map[string]bool{} // texts in the program
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "catalogue" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					written[text] = true
				}
			case *ast.CallExpr:
				if id, args, ok := use(n); ok {
					checkUse(t, set.Position(n.Pos()), id, args)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range all {
		if isWord := strings.HasPrefix(id, "word."); !written[id] && !isWord {
			t.Errorf("%s is used nowhere", id)
		}
	}
}

// use is the id of the message that a call makes and how many arguments it has, if the
// source names it.
func use(call *ast.CallExpr) (id string, args int, ok bool) {
	name := ""
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	}
	before := map[string]int{"NewMessage": 0, "message": 0, "sentence": 1} // arguments before the id
	at, makes := before[name]
	if !makes || len(call.Args) <= at || call.Ellipsis != token.NoPos {
		return "", 0, false
	}
	lit, ok := call.Args[at].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", 0, false
	}
	id, err := strconv.Unquote(lit.Value)
	return id, len(call.Args) - at - 1, err == nil
}

func checkUse(t *testing.T, at token.Position, id string, args int) {
	t.Helper()
	e, known := all[id]
	if !known {
		t.Errorf("%s: the catalogue has no sentence %q", at, id)
	} else if args != e.arity && !e.Joins {
		t.Errorf("%s: %s takes %d arguments, got %d", at, id, e.arity, args)
	}
}
