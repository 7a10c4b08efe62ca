package matrix_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/faults/matrix"
)

// module writes the files of a module, by path, and returns its root.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const intro = "package x_test\nimport \"github.com/locksteward/locksteward/internal/faults\"\n"

func TestFind(t *testing.T) {
	t.Parallel()
	tests, err := matrix.Find(module(t, map[string]string{
		"lock/chaos/a_test.go": intro + "func TestB(t *testing.T) { faults.Covers(t, 1, 2)\nt.Run(\"\", func(t *testing.T) { faults.Covers(t, 3) }) }\nfunc TestA(t *testing.T) {}",
		"scanner/b_test.go":    intro + "func TestC(t *testing.T) { faults.CoversBoth(t, 4) }",
		"bench/go.mod":         "",
		"bench/c_test.go":      intro + "func TestD(t *testing.T) { faults.Covers(t, 5) }",
	}))
	if err != nil || len(tests) != 2 {
		t.Fatalf("found %v, %v; want two tests", tests, err)
	}
	if b := tests[0]; b.Name != "TestB" || b.File != "lock/chaos/a_test.go" || len(b.Rows) != 3 || len(b.Rows[2].Parts) != 1 || b.Rows[2].Parts[0] != "library" {
		t.Errorf("first test: %+v", b)
	}
	if c := tests[1]; c.Package() != "scanner" || len(c.Rows[0].Parts) != 2 {
		t.Errorf("second test: %+v", c)
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"helper":  {"func help(t *testing.T) { faults.Covers(t, 1) }", "outside a test function"},
		"no row":  {"func TestX(t *testing.T) { faults.Covers(t) }", "names no row"},
		"named":   {"func TestX(t *testing.T) { faults.Covers(t, row) }", "not a literal"},
		"unknown": {"func TestX(t *testing.T) { faults.Covers(t, 85) }", "no fault has the number 85"},
	} {
		_, err := matrix.Find(module(t, map[string]string{"x/a_test.go": intro + tc.text}))
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "a_test.go:3:") {
			t.Errorf("%s: %v, want %q with its place", name, err, tc.want)
		}
	}
}
