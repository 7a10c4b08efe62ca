package console

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/api"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/exchanges.txt and the table of access")

var (
	heading = regexp.MustCompile("(?m)^### `([^`]+)`$")
	example = regexp.MustCompile("(?s)```http\n(GET|POST) (\\S+)\n(?:\n(.*?)\n)?```\n\n```json\n(.*?)```")
)

// Every route has its exchange, every exchange its route, and every answer is what the console answers. The examples of
// docs/api.md are among them.
func TestExchangesAreTheAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	path := filepath.Join("testdata", "exchanges.txt")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	var documented, served []string
	for _, m := range heading.FindAllStringSubmatch(doc, -1) {
		documented = append(documented, m[1])
	}
	for _, rt := range b.server.routes() {
		served = append(served, strings.TrimSuffix(rt.pattern, "{$}")) // Go's mark of this path alone
	}
	if slices.Sort(documented); !slices.Equal(documented, slices.Sorted(slices.Values(served))) {
		t.Errorf("documented are %q, served are %q", documented, served)
	}
	examples := example.FindAllStringSubmatch(doc, -1)
	if len(examples) != len(served)-1 { // all but the page
		t.Errorf("%d examples for %d routes", len(examples), len(served))
	}
	for _, m := range examples {
		a := b.do("all", m[1], m[2], m[3])
		if a.status >= 300 {
			t.Errorf("%s %s: status %d: %s", m[1], m[2], a.status, a.body)
			continue
		}
		var got bytes.Buffer
		if err := json.Indent(&got, []byte(a.body), "", "  "); err != nil {
			t.Fatal(err)
		}
		switch {
		case *update:
			doc = strings.Replace(doc, m[0], strings.TrimSuffix(m[0], m[4]+"```")+got.String()+"```", 1)
		case got.String() != m[4]:
			t.Errorf("%s %s: the file differs (go test ./console -run TestExchanges -update rewrites it); the answer is\n%s", m[1], m[2], got.String())
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	requests := regexp.MustCompile("(?s)```http\n.*?```").FindAllString(string(page), -1)
	answers := regexp.MustCompile("(?s)```json\n.*?```").FindAllString(string(page), -1)
	if len(requests) == 0 || len(answers) == 0 {
		t.Error("docs/api.md shows no request or no answer")
	}
	for _, shown := range slices.Concat(requests, answers) {
		if !strings.Contains(doc, shown) {
			t.Errorf("docs/api.md shows what is not in %s:\n%s", path, shown)
		}
	}
	for _, code := range []api.Code{
		api.CodeInvalid, api.CodeUnauthenticated, api.CodeRefused, api.CodeNotFound, api.CodeMethod, api.CodeConflict,
		api.CodeTooLarge, api.CodeMediaType, api.CodeMisdirected, api.CodeTooMany, api.CodeInternal, api.CodeUnavailable,
	} {
		if !strings.Contains(string(page), "`"+string(code)+"`") {
			t.Errorf("docs/api.md does not name the code %q", code)
		}
	}
}
