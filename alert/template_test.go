package alert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

func TestTemplatesReplaceTheText(t *testing.T) {
	t.Parallel()
	own, err := (&Template{
		Title: `{{upper .Type}}: {{len .Findings}}`,
		Text: `{{range .Findings}}{{.Rule}} on {{.Key.Key}} ({{t .Severity}}) since {{date "15:04" .Since}}, {{since .Since .At}}
{{join ", " .Evidence | truncate 12}}{{else}}{{t "test"}} {{lower .Text}}{{with .Release}}{{.Text}}{{end}}{{end}}`,
	}).compile("zh")
	if err != nil {
		t.Fatal(err)
	}
	title, text, err := own.apply(shownSamples("zh")["firing"])
	want := "ttl/none on lock:order:42 (严重) since 11:58, 2m0s\n两次查看 PTTL 均…"
	if err != nil || title != "FINDINGS.FIRING: 1" || text != want {
		t.Errorf("got %q, %q, %v", title, text, err)
	}
	s := renderer{lang: "zh", own: own}.render(shownSamples("zh")["firing"])
	if s.title != title || s.text != want || len(s.links) == 0 || s.level != levelCritical {
		t.Errorf("got %+v", s)
	}
	for _, kind := range peopleKinds {
		if body := string(messageOf(kind, shownSamples("zh")["firing"], own)); !strings.Contains(body, "since 11:58") || !strings.Contains(body, "FINDINGS.FIRING") {
			t.Errorf("%s: got %s", kind, body)
		}
	}
}

// What is wrong with a template shows at load, with its place and the way out.
func TestBadTemplatesAreErrorsAtLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"syntax":            {"one\n{{if}}", []string{"template.text: line 2", "missing value for if"}},
		"no end":            {"{{range .Findings}}", []string{"template.text: line 1", "unexpected EOF"}},
		"no function":       {"{{nope .}}", []string{"template.text: line 1", `"nope" not defined`}},
		"no field":          {"\n\n{{.Nope}}", []string{"template.text: line 3", `Payload has no field "Nope"`, "it has", "Findings", "Counts", "tried with"}},
		"no field of event": {"{{range .Findings}}{{.Severty}}{{end}}", []string{`PayloadFinding has no field "Severty"`, "Severity", "Evidence", "URL"}},
		"no field of key":   {"{{range .Findings}}{{.Key.Name}}{{end}}", []string{`Key has no field "Name"`, "KeyB64"}},
		"nil release":       {"{{.Release.Text}}", []string{"template.text: line 1", "nil pointer", "findings.firing"}},
		"wrong argument":    {`{{truncate "x" 3}}`, []string{"template.text: line 1"}},
		"index":             {`{{index .Findings 5}}`, []string{"template.text: line 1", "out of range"}},
		"recursive":         {`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, []string{"template.text: line 1", "exceeded maximum template depth"}},
		"long":              {`{{range 5000}}0123456789012345678901234567890{{end}}`, []string{"writes more than 65536 bytes"}},
		"doubling":          {`{{$x := "0123456789"}}{{range 40}}{{$x = printf "%s%s" $x $x}}{{end}}`, []string{"writes more than 65536 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Receiver{Name: "ops", Template: &Template{Text: c.source}, Kind: "wecom", Endpoint: Endpoint{URL: "https://h/x"}}
			began := time.Now()
			err := Config{Receivers: []Receiver{r}}.Validate()
			if err == nil {
				t.Fatal("it is valid")
			}
			for _, want := range append(c.want, "receivers[0].template.text: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestBothTemplatesAreReported(t *testing.T) {
	t.Parallel()
	err := Config{Receivers: []Receiver{
		{Name: "a", Template: &Template{Title: "{{.A}}", Text: "{{.B}}"}, Kind: "slack", Endpoint: Endpoint{URL: "https://h/x"}},
		{Name: "b", Template: &Template{Title: "x"}, Kind: "webhook", Endpoint: Endpoint{URL: "https://h/x"}},
	}}.Validate()
	for _, want := range []string{
		`receivers[0].template.title: line 1: <.A>: Payload has no field "A"`, `receivers[0].template.text: line 1: <.B>`,
		"receivers[1].template: is a key of kind pagerduty, email, slack, dingtalk, feishu or wecom, and not of webhook",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// A template that works for all samples can fail later: the message has the built-in
// text then, and that is said.
func TestFailedTemplatesFallBack(t *testing.T) {
	t.Parallel()
	source := `{{if eq .ID "msg_1"}}{{index .Findings 99}}{{end}}own text`
	var failed atomic.Int64
	hooks := Hooks{TemplateFailed: func(receiver string) {
		if receiver == "ops" {
			failed.Add(1)
		}
	}}
	s := startService(t, "wecom")
	r := receiver(t, "wecom", s.url, "en")
	r.Template = &Template{Text: source}
	sender, err := New(zap.NewNop(), Config{Receivers: []Receiver{r}}, &box{}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	out := sender.workers()[0].dest.Load().out
	t.Cleanup(out.close)
	p := shownSamples("en")["firing"]
	if err := out.send(t.Context(), newOutgoing(p.ID, encoded(t, p))); err != nil {
		t.Fatal(err)
	}
	if body := string(<-s.got); !strings.Contains(body, "lock:order:42 has no expiry") || strings.Contains(body, "own text") || failed.Load() != 1 {
		t.Errorf("counted %d, got %s", failed.Load(), body)
	}
	p.ID = "msg_2"
	if err := out.send(t.Context(), newOutgoing(p.ID, encoded(t, p))); err != nil {
		t.Fatal(err)
	}
	if body := string(<-s.got); !strings.Contains(body, "own text") || failed.Load() != 1 {
		t.Errorf("counted %d, got %s", failed.Load(), body)
	}
}

// A body that is no message is given up, and nothing is sent.
func TestUnreadableMessagesAreGivenUp(t *testing.T) {
	t.Parallel()
	for _, kind := range peopleKinds {
		s := startService(t, kind)
		err := openKind(t, receiver(t, kind, s.url, "en")).send(t.Context(), newOutgoing("msg_1", []byte("{")))
		if e, ok := errors.AsType[*DeliveryError](err); !ok || e.Retryable || len(s.got) != 0 {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// Templates are executed at once by several attempts.
func TestTemplatesAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	own, err := (&Template{Text: `{{range .Findings}}{{.Rule}}{{end}}{{range 1000}}{{end}}`}).compile("en")
	if err != nil {
		t.Fatal(err)
	}
	p := Payload{Findings: []PayloadFinding{eventOf(found("k", locksteward.SeverityWarning, locksteward.StatusFiring), 1, "en")}}
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			_, text, err := own.apply(p)
			if err == nil && text != "ttl/none" {
				err = errors.New(text)
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// docs/templates.md names all fields and words, and its example works.
func TestTemplatesDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "docs", "templates.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	var fields, list strings.Builder
	fields.WriteString("| of | fields |\n|---|---|\n")
	for _, name := range []string{"Payload", "Event", "api.Key", "Group", "Count", "ReleaseEvent", "ReleaseRequest", "api.Decision"} {
		of := map[string]string{
			"Payload": "`.`", "Event": "one of `.Findings`", "api.Key": "`.Key`", "Group": "`.Group`, can be nil", "Count": "one of `.Counts`",
			"ReleaseEvent": "`.Release`, can be nil", "ReleaseRequest": "`.Release.Request`, can be nil", "api.Decision": "one of `.Decisions`",
		}[name]
		fmt.Fprintf(&fields, "| %s | `%s` |\n", of, strings.Join(templateFields()[name], "`, `"))
	}
	for _, id := range slices.Sorted(catalogue.IDs()) {
		if word, ok := strings.CutPrefix(id, "word."); ok {
			fmt.Fprintf(&list, "`%s`, ", word)
		}
	}
	for name, content := range map[string]string{"fields": fields.String(), "words": strings.TrimSuffix(list.String(), ", ") + ".\n"} {
		block := regexp.MustCompile("(?s)<!-- " + name + " -->\n.*?<!-- /" + name + " -->")
		want := "<!-- " + name + " -->\n" + content + "<!-- /" + name + " -->"
		if found := block.FindString(text); found == "" {
			t.Errorf("%s has no block %q", path, name)
		} else if found != want && !*update {
			t.Errorf("%s: the %s are not those of the code (go test ./alert -update rewrites them)", path, name)
		}
		text = block.ReplaceAllLiteralString(text, want)
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	example := regexp.MustCompile("(?s)```yaml\n(- name: ops.*?)```").FindStringSubmatch(text)
	if example == nil {
		t.Fatal("there is no example")
	}
	if err := decode(t, "receivers:\n"+example[1]).Validate(); err != nil {
		t.Error(err)
	}
}
