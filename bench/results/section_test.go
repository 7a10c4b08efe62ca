package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A section that is written again replaces itself and nothing else.
func TestPut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	put := func(name, cell string) {
		t.Helper()
		table := Table{Title: "T", Header: []string{"What", "figure"}, Rows: [][]string{{"x", cell}}}
		if err := Put(path, Section{Name: name, Title: "About " + name, Tables: []Table{table}}); err != nil {
			t.Fatal(err)
		}
	}
	put("first", "1")
	put("second", "2")
	put("first", "3")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	first, second := strings.Index(text, "| x | 3 |"), strings.Index(text, "| x | 2 |")
	if strings.Contains(text, "| x | 1 |") || first < 0 || second < first || strings.Count(text, "# Figures\n") != 1 {
		t.Errorf("file is\n%s", text)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, "<!-- end of first -->", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Put(path, Section{Name: "first"}); err == nil || !strings.Contains(err.Error(), "end of first") {
		t.Errorf("a section without its end: %v", err)
	}
}
