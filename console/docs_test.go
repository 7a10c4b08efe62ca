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

var update = flag.Bool("update", false, "rewrite the answers in docs/api.md")

var (
	heading = regexp.MustCompile("(?m)^### `([^`]+)`$")
	example = regexp.MustCompile("(?s)```http\n(GET|POST) (\\S+)\n(?:\n(.*?)\n)?```\n\n```json\n(.*?)```")
)

// Every route has its section, every section its route, and every example is
// what the console answers.
func TestDocumentIsTheRoutes(t *testing.T) {
	t.Parallel()
	b := setup(t, "all")
	path := filepath.Join("..", "docs", "api.md")
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
			t.Errorf("%s %s: the document differs (go test ./console -update rewrites it); the answer is\n%s", m[1], m[2], got.String())
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, code := range []api.Code{
		api.CodeInvalid, api.CodeUnauthenticated, api.CodeRefused, api.CodeNotFound, api.CodeMethod, api.CodeConflict,
		api.CodeTooLarge, api.CodeMediaType, api.CodeMisdirected, api.CodeTooMany, api.CodeInternal, api.CodeUnavailable,
	} {
		if !strings.Contains(doc, "`"+string(code)+"`") {
			t.Errorf("%s does not name the code %q", path, code)
		}
	}
}
