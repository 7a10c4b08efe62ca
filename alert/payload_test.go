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
	"github.com/locksteward/locksteward/catalogue"
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
	take := func(name string, m locksteward.Notification, err error) {
		if err != nil {
			t.Fatal(err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, m.Body, "", "  "); err != nil {
			t.Fatal(err)
		}
		out[name] = append(pretty.Bytes(), '\n')
	}
	ops := writerOf("ops")
	for name, batch := range map[string][]locksteward.Transition{
		"firing": {full}, "resolved": {ended}, "several": {hostile, class},
	} {
		m, err := ops.newsOf(batch...)
		take(name, m, err)
	}
	m, err := releaseNotification(ops, glass(), 12)
	take("release", m, err)
	m, err = releaseNotification(ops, Notice{
		EventID: "release.breaker/main/1", Kind: "release.breaker", At: full.At, Actor: "agent", Target: "redis",
		Message: locksteward.Literal("20 locks look dead at once: nothing is released without a person."),
	}, 13)
	take("breaker", m, err)
	m, err = testNotification(ops, "ana", full.At, 14)
	take("test", m, err)
	return out
}

// glass is a break-glass release with all that a request can have.
func glass() Notice {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return Notice{
		EventID: "r-1/release.break_glass", Kind: "release.break_glass", At: at, Actor: "ana", Target: "redis", Loud: true,
		Message: locksteward.NewMessage("release.glass-broken", "ana", locksteward.NewMessage("word.release")),
		Request: locksteward.Request{
			ID: "r-1", State: locksteward.RequestApproved, EvidenceHash: "sha256:e1", Requester: "ana", Reason: "checkout is down",
			CreatedAt: at, ExpiresAt: at.Add(time.Hour), FinishedAt: at.Add(time.Second), Outcome: "Released; 2 waiters woken.",
			Decisions: []locksteward.Decision{{By: "ana", Approve: true, Reason: "checkout is down", At: at, EvidenceHash: "sha256:e1"}},
			Evidence: locksteward.Evidence{
				Target: "redis", Key: "lock:order:\xff", Class: "orders", Library: "token", Identity: locksteward.IdentityStrong,
				TokenDigest: "hmac-sha256:00", Findings: []string{"ttl/none"}, HolderAlive: true, BreakGlass: true, Of: "r-0",
			},
		},
	}
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

// Evidence is in the language of the receiver, as all that a message says of a finding.
// A text without Chinese is in English.
func TestEvidenceIsInTheLanguageOfTheReceiver(t *testing.T) {
	t.Parallel()
	f := fire("lock:order:42", 7)
	f.Finding.Evidence = []locksteward.Message{locksteward.Literal("PTTL is -1", "PTTL 为 -1"), locksteward.Literal("not translated")}
	f.Finding.CounterEvidence = []locksteward.Message{locksteward.Literal("seen once", "只看到一次")}
	for lang, want := range map[string][]string{
		"en": {"PTTL is -1", "not translated", "seen once"}, "zh": {"PTTL 为 -1", "not translated", "只看到一次"},
	} {
		a := newWriter(Config{Grouping: DefaultGrouping()}, Receiver{Name: "ops", Lang: lang}.withDefaults(), webhookKind.traits, Hooks{})
		m, err := a.newsOf(f)
		if err != nil {
			t.Fatal(err)
		}
		e := decoded(m.Body).Findings[0]
		if got := slices.Concat(e.Evidence, e.CounterEvidence); !slices.Equal(got, want) || e.Summary != catalogue.Text(lang, f.Finding.Summary) {
			t.Errorf("%s: got %q and %q", lang, e.Summary, got)
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
	for _, name := range []string{"firing", "resolved", "release"} {
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
		"two at once": `{"version":"1","type":"test","id":"msg_00000000000000000000000000000000","seq":1,"timestamp":"2026-03-01T12:00:00Z","text":"","status":"firing","findings":[]}`,
		"no request":  `{"version":"1","type":"release.final","id":"msg_00000000000000000000000000000000","seq":1,"timestamp":"2026-03-01T12:00:00Z","release":{"request":{}}}`,
		"quiet":       `{"version":"1","type":"release.break_glass","id":"msg_00000000000000000000000000000000","seq":1,"timestamp":"2026-03-01T12:00:00Z","loud":false,"release":{"event_id":"e","seq":1,"at":"2026-03-01T12:00:00Z","actor":"ana","text":"x"}}`,
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
		case "oneOf":
			var fits int
			var all []string
			for i, one := range arg.([]any) {
				found := s.check(one.(map[string]any), v, fmt.Sprintf("%s (%d)", at, i))
				if len(found) == 0 {
					fits++
				}
				all = append(all, found...)
			}
			if fits != 1 {
				bad("fits %d of the alternatives: %s", fits, strings.Join(all, "; "))
			}
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
	case "boolean":
		_, ok := v.(bool)
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
		m, err := writerOf(receiver).newsOf(transitions...)
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
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

// A message has the evidence's hash and never a token or its digest.
func TestNoTokenInAMessage(t *testing.T) {
	t.Parallel()
	m, err := releaseNotification(writerOf("ops"), glass(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if body := string(m.Body); strings.Contains(body, "token_digest") || strings.Contains(body, "hmac-sha256") || !strings.Contains(body, "sha256:e1") {
		t.Errorf("got %s", body)
	}
	if m.Ordering != "r-1" || TypeOf(m.Body) != "release.break_glass" || TypeOf([]byte("{")) != "" {
		t.Errorf("ordering %q, type %q", m.Ordering, TypeOf(m.Body))
	}
}
