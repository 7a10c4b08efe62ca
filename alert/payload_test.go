package alert

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

var update = flag.Bool("update", false, "rewrite the golden files and the examples of docs/webhook.md")

// samples are the messages of the golden files, by name.
func samples(t *testing.T) map[string][]byte {
	t.Helper()
	full := fire("lock:order:42", 7)
	full.Finding.Team = "checkout"
	full.Finding.RunbookURL = "https://wiki/locks"
	full.Finding.Since = full.At.Add(-time.Minute)
	full.Finding.FiredAt = full.At
	ended := resolve("lock:order:42", 8)
	ended.Finding.Since, ended.Finding.FiredAt = full.Finding.Since, full.Finding.FiredAt
	ended.At = full.At.Add(time.Hour)
	ended.Finding.ResolvedAt = ended.At
	hostile := fire("lock:\xff\n\"<b>\x00", 9)
	hostile.EventID = "ev9"
	hostile.Finding.Severity = locksteward.SeverityWarning
	hostile.Finding.Risk = ""
	class := fire("", 10)
	class.EventID = "ev10"
	class.Finding.Rule = "holder/shared-token"
	out := map[string][]byte{}
	for name, batch := range map[string][]locksteward.Transition{
		"firing": {full}, "resolved": {ended}, "several": {hostile, class},
	} {
		var qs []queued
		for _, tr := range batch {
			qs = append(qs, queued{t: tr, fp: tr.Finding.Fingerprint()})
		}
		m, err := compose("ops", "en", qs)
		if err != nil {
			t.Fatal(err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, m.body, "", "  "); err != nil {
			t.Fatal(err)
		}
		out[name] = append(pretty.Bytes(), '\n')
	}
	return out
}

func TestPayloadGolden(t *testing.T) {
	t.Parallel()
	for name, got := range samples(t) {
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs (go test ./alert -update rewrites it):\n%s", path, got)
		}
	}
}

// The examples of the documentation are the golden messages themselves.
func TestDocumentShowsTheGoldens(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "docs", "webhook.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(doc)
	for _, name := range []string{"firing", "resolved"} {
		example := string(samples(t)[name])
		block := regexp.MustCompile("(?s)<!-- example: " + name + " -->\n```json\n.*?```")
		want := "<!-- example: " + name + " -->\n```json\n" + example + "```"
		if found := block.FindString(text); found == "" {
			t.Errorf("%s has no example %q", path, name)
		} else if found != want && !*update {
			t.Errorf("%s: the example %q is not the golden message (go test ./alert -update rewrites it)", path, name)
		} else {
			text = block.ReplaceAllLiteralString(text, want)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range Reasons() {
		if !strings.Contains(text, "`"+string(r)+"`") {
			t.Errorf("%s does not name the reason %q", path, r)
		}
	}
}

func TestPayloadMatchesItsSchema(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "docs", "webhook.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(raw, &s.root); err != nil {
		t.Fatal(err)
	}
	for name, body := range samples(t) {
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		for _, problem := range s.check(s.root, v, "$") {
			t.Errorf("%s: %s", name, problem)
		}
	}
	// The checker must be able to fail.
	for name, body := range map[string]string{
		"no id":       `{"version":"1","type":"findings.firing","seq":1,"timestamp":"2026-03-01T12:00:00Z","status":"firing","findings":[]}`,
		"not v1":      `{"version":"2","type":"findings.firing","id":"msg_00000000000000000000000000000000","seq":1,"timestamp":"2026-03-01T12:00:00Z","status":"firing","findings":[]}`,
		"other types": `{"version":1,"type":[],"id":{},"seq":"1","timestamp":0,"status":true,"findings":[{}]}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if len(s.check(s.root, v, "$")) == 0 {
			t.Errorf("%s: fits the schema", name)
		}
	}
}

// schema checks the keywords that docs/webhook.schema.json uses and fails on
// every other, so that none is passed over.
type schema struct{ root map[string]any }

func (s schema) check(rule map[string]any, v any, at string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, at+": "+fmt.Sprintf(format, args...)) }
	for keyword, arg := range rule {
		switch keyword {
		case "$schema", "$id", "$defs", "title", "description", "examples", "format":
		case "$ref":
			name := strings.TrimPrefix(arg.(string), "#/$defs/")
			problems = append(problems, s.check(s.root["$defs"].(map[string]any)[name].(map[string]any), v, at)...)
		case "type":
			if !hasType(v, arg.(string)) {
				bad("is %T, want %s", v, arg)
			}
		case "const":
			if v != arg {
				bad("is %v, want %v", v, arg)
			}
		case "enum":
			if !slices.Contains(arg.([]any), v) {
				bad("is %v, want one of %v", v, arg)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				bad("%q does not match %s", text, arg)
			}
		case "minimum":
			if n, ok := v.(float64); ok && n < arg.(float64) {
				bad("is %v, want at least %v", n, arg)
			}
		case "minItems":
			if list, ok := v.([]any); ok && float64(len(list)) < arg.(float64) {
				bad("has %d items", len(list))
			}
		case "required":
			obj, _ := v.(map[string]any)
			for _, name := range arg.([]any) {
				if _, has := obj[name.(string)]; !has {
					bad("%s is missing", name)
				}
			}
		case "properties":
			obj, _ := v.(map[string]any)
			known := arg.(map[string]any)
			for name, value := range obj {
				sub, has := known[name].(map[string]any)
				if !has {
					// The schema lets receivers ignore unknown fields; what this
					// version sends is documented nevertheless.
					bad("%s is not in the schema", name)
					continue
				}
				problems = append(problems, s.check(sub, value, at+"."+name)...)
			}
		case "items":
			list, _ := v.([]any)
			for i, item := range list {
				problems = append(problems, s.check(arg.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		default:
			bad("the schema uses %q, which this test does not check", keyword)
		}
	}
	return problems
}

func hasType(v any, name string) bool {
	switch name {
	case "object":
		_, ok := v.(map[string]any)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "string":
		_, ok := v.(string)
		return ok
	case "integer":
		n, ok := v.(float64)
		return ok && n == float64(int64(n))
	default:
		return false
	}
}

func TestMessageIDIsOfReceiverAndEvents(t *testing.T) {
	t.Parallel()
	id := func(receiver string, transitions ...locksteward.Transition) string {
		var qs []queued
		for _, tr := range transitions {
			qs = append(qs, queued{t: tr})
		}
		m, err := compose(receiver, "en", qs)
		if err != nil {
			t.Fatal(err)
		}
		return m.id
	}
	first := id("a", fire("k", 1))
	if again := id("a", fire("k", 1)); again != first {
		t.Errorf("the id is not stable: %s, then %s", first, again)
	}
	bare := fire("k", 1)
	bare.EventID = ""
	others := []string{id("b", fire("k", 1)), id("a", fire("k", 2)), id("a", fire("l", 1)), id("a", fire("k", 1), fire("l", 2)), id("a", bare)}
	slices.Sort(others)
	if len(slices.Compact(others)) != 5 || slices.Contains(others, first) {
		t.Errorf("ids collide: %v", others)
	}
}
