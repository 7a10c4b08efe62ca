package matrix_test

import (
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/internal/faults/matrix"
)

// The outcomes of real runs of go test: what passes, fails, is skipped, and what
// passes without ever saying what it covers.
func TestRun(t *testing.T) {
	t.Parallel()
	root := module(t, map[string]string{
		"go.mod": "module example.org/x\n\ngo 1.26\n",
		"x/x_test.go": `package x
import "testing"
func TestPass(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Attr("fault", "1") }) }
func TestFail(t *testing.T) { t.Attr("fault", "1"); t.Error("said why") }
func TestSkip(t *testing.T) { t.Skip() }
func TestSilent(t *testing.T) {}
func TestPas(t *testing.T) { t.Error("was not asked for") }
`,
		"y/y_test.go": "package y\nfunc broken(",
	})
	rows := []matrix.Cover{{Row: 1, Parts: []faults.Part{faults.Agent}}}
	var tests []matrix.Test
	want := map[string]string{"TestPass": matrix.Passed, "TestFail": matrix.Failed, "TestSkip": matrix.Skipped, "TestSilent": matrix.Skipped, "TestGone": matrix.NotRun}
	for name := range want {
		tests = append(tests, matrix.Test{Name: name, File: "x/x_test.go", Rows: rows})
	}
	var log strings.Builder
	got, err := matrix.Run(t.Context(), root, tests, &log)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		if got[test.ID()] != want[test.Name] {
			t.Errorf("%s: %s, want %s", test.Name, got[test.ID()], want[test.Name])
		}
	}
	if !strings.Contains(log.String(), "said why") || strings.Contains(log.String(), "was not asked for") {
		t.Errorf("log: %s", log.String())
	}
	_, err = matrix.Run(t.Context(), root, []matrix.Test{{Name: "TestX", File: "y/y_test.go", Rows: rows}}, &log)
	if err == nil || !strings.Contains(err.Error(), "y_test.go:2") {
		t.Errorf("a package that does not compile: %v", err)
	}
}
