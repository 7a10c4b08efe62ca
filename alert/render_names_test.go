package alert

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// A lock's name is one line of a message, written as in the summary.
func TestNamesBreakNoLines(t *testing.T) {
	t.Parallel()
	const name, shown = "lock:h:\nnew\nline", `lock:h:\nnew\nline`
	f := found(name, locksteward.SeverityCritical, locksteward.StatusFiring)
	f.Summary = locksteward.Literal(shown + " has no expiry")
	p := Payload{Version: PayloadVersion, Lang: "en", Type: "findings.firing", ID: "msg_1", Findings: []PayloadFinding{eventOf(f, 1, "en")}}
	n := glass()
	n.Request.Evidence.Key = name
	m, err := releaseNotification(writer{name: "ops", lang: "en"}, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Payload{p, decoded(m.Body)} {
		s := renderer{lang: "en"}.render(p)
		if !strings.Contains(s.title, shown) {
			t.Errorf("the title is %q", s.title)
		}
		if lines := strings.Split(s.plain(), "\n"); !slices.Contains(lines, "lock: "+shown) {
			t.Errorf("no line of the lock in %q", lines)
		}
	}
}

// What is a template's is one line each, whatever locks and people wrote, and the
// message itself stays as it was.
func TestTemplatesSeeNoControlCharacters(t *testing.T) {
	t.Parallel()
	const name, shown = "lock:h:\nnew\nline", `lock:h:\nnew\nline`
	f := found(name, locksteward.SeverityCritical, locksteward.StatusFiring)
	f.Evidence = []locksteward.Message{locksteward.Literal("one\ntwo\x07")}
	f.Team = "a\r\nb"
	n := glass()
	n.Request.Evidence.Key, n.Request.Reason = name, "because\n\x1b[2J"
	m, err := releaseNotification(writer{name: "ops", lang: "en"}, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := decoded(m.Body)
	p.Findings = []PayloadFinding{eventOf(f, 1, "en")}
	p.Group = &Group{Key: "k\n", Labels: map[string]string{"key\n": "v\n"}}
	p.Text = "a\nb"
	before := string(encoded(t, p))

	own, err := (&Template{
		Title: `{{range .Findings}}{{.Key.Key}}{{end}}`,
		Text: `{{range .Findings}}{{printf "%q" .Key.Key}} {{printf "%q" .Evidence}} {{printf "%q" .Team}}{{end}}
{{with .Release}}{{with .Request}}{{printf "%q" .Key.Key}} {{printf "%q" .Reason}}{{end}}{{end}} {{with .Group}}{{printf "%q" .Labels}}{{end}} {{printf "%q" .Text}}`,
	}).compile("en")
	if err != nil {
		t.Fatal(err)
	}
	title, text, err := own.apply(p)
	quoted := `"lock:h:\\nnew\\nline"`
	want := quoted + ` ["one two\\a"] "a  b"` + "\n" + quoted + ` "because \\x1b[2J" map["key ":"v "] "a b"`
	if err != nil || title != shown || text != want {
		t.Errorf("got %q, %v and\n%s, not\n%s", title, err, text, want)
	}
	if after := string(encoded(t, p)); after != before {
		t.Errorf("the message changed to %s", after)
	}
	if text := string(encoded(t, legible(p))); strings.IndexFunc(text, unicode.IsControl) >= 0 || strings.Contains(text, `\n"`) {
		t.Errorf("got %s", text)
	}
	if raw := "\xff\n"; lockName(api.NewKey(raw)) != `\xff\n` {
		t.Errorf("got %q", lockName(api.NewKey(raw)))
	}
}
