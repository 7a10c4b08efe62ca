package fenced_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/lock/fenced"
)

const page = "../../docs/fencing.md"

// Every snippet of the page is code that is tested here, word for word: whole
// for SQL and Lua, a part of a test for Go and for the table of the tests.
func TestPageShowsTestedCode(t *testing.T) {
	t.Parallel()
	text := read(t, page)
	whole := map[string][]string{
		"lua": {plain(read(t, "set.lua"))},
		"sql": {plain(fenced.Schema()), plain(fenced.GuardQuery())},
	}
	parts := map[string]string{
		"go":  plain(read(t, "main_test.go")) + "\n" + plain(read(t, "snippets_test.go")),
		"sql": plain(tables),
	}
	shown := map[string]int{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		language, block := m[1], plain(m[2])
		shown[language]++
		if i := slices.Index(whole[language], block); i >= 0 {
			whole[language] = slices.Delete(whole[language], i, i+1)
			continue
		}
		if part, ok := parts[language]; language != "text" && (!ok || !strings.Contains(part, block)) {
			t.Errorf("%s: this %s is not what is tested:\n%s", page, language, block)
		}
	}
	for language, left := range whole {
		if len(left) > 0 {
			t.Errorf("%s does not show this %s:\n%s", page, language, strings.Join(left, "\n\n"))
		}
	}
	if shown["go"] == 0 {
		t.Errorf("%s: no snippet of Go found", page)
	}
}

// The package comment shows the row of the tests, too.
func TestCommentShowsTestedCode(t *testing.T) {
	t.Parallel()
	comment := strings.NewReplacer("//\t", "", "//", "").Replace(read(t, "row.go"))
	_, rest, _ := strings.Cut(plain(comment), "var orders")
	snippet, _, found := strings.Cut("var orders"+rest, "\n}\n")
	if !found || !strings.Contains(plain(read(t, "main_test.go")), snippet) {
		t.Errorf("the comment of Row is not what is tested:\n%s", snippet)
	}
}

// plain takes the indentation away.
func plain(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
