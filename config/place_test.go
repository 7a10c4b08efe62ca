package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/config"
)

// TestExpressionErrorsPointIntoTheFile: whatever way YAML has of writing a text,
// the problem names the line and the column where the wrong word begins.
func TestExpressionErrorsPointIntoTheFile(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"double quotes": `    when: "lock.class == 'batch' && wrong > 1"`,
		"escapes":       `    when: "lock.class == \"batch\" && lock.key != '\u00e9' && wrong > 1"`,
		"single quotes": `    when: 'lock.class == ''batch'' && wrong > 1'`,
		"plain":         `    when: lock.class == 'batch' && wrong > 1`,
		"wide":          `    when: "lock.key == '锁' && wrong > 1"`,
		"literal":       "    when: |\n      lock.class == 'batch' &&\n        wrong > 1",
		"folded":        "    when: >-\n      lock.class == 'batch'\n      &&\n\n      wrong > 1",
		"plain lines":   "    when: lock.class == 'batch' &&\n      wrong > 1",
		"quoted lines":  "    when: \"lock.class == 'batch' \\\n      && wrong > 1\"",
		"flow":          "    {}\n  - {rule: custom/y, when: \"lock.has_ttl && wrong > 1\"}",
	} {
		text := minimal + "rules:\n  - rule: custom/x\n" + rule + "\n"
		if name == "flow" {
			text = minimal + "rules:\n  - {rule: custom/y, when: \"lock.has_ttl && wrong > 1\"}\n"
		}
		before, _, _ := strings.Cut(text, "wrong")
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
		want := at("c.yaml", line, column) + `rules[0].when: unknown name "wrong"; docs/expressions.md lists what there is`
		got := problems(t, text)
		if len(got) != 3 || got[0] != want {
			t.Errorf("%s:\n got %q\nwant %q and two lines with the place", name, got, want)
			continue
		}
		if caret := strings.IndexByte(got[2], '^'); caret != len([]rune(got[1][:strings.Index(got[1], "wrong")])) {
			t.Errorf("%s: the caret is not below the word:\n%s\n%s", name, got[1], got[2])
		}
	}
}

// A variable in the text moves what is behind it: the place is then where the
// text begins.
func TestExpressionErrorBehindAVariable(t *testing.T) {
	t.Setenv("BATCH_CLASS", "batch-of-the-night")
	got := problems(t, minimal+"rules:\n  - rule: custom/x\n    when: \"lock.class == '${BATCH_CLASS}' && wrong > 1\"\n")
	if len(got) != 3 || !strings.HasPrefix(got[0], at("c.yaml", 4, 11)+"rules[0].when: ") {
		t.Errorf("got %q", got)
	}
}

func TestProblemsNameTheLine(t *testing.T) {
	t.Parallel()
	got := strings.Join(problems(t, `
targets:
  - {name: a, url: "redis://127.0.0.1"}
  - name: b
classes:
  - class: all
    match: ["lock:*"]
  - class: orders
    match: ["lock:order:*"]
    dead_when: [ttl/none, "lock.age > 7200", ttl/nine]
  - class: everything
    match:
      - "*"
rules:
  - {rule: nope}
`), "\n")
	for _, want := range []string{
		`c.yaml:4: targets[1].url: missing`,
		`c.yaml:9: classes[1].match: class "orders" can never match, "lock:*" of classes[0].match[0] takes all its keys first; move it before classes[0]`,
		`c.yaml:10:37: classes[1].dead_when[1]: > does not take (duration, int); write a duration as duration('2h')`,
		`c.yaml:10: classes[1].dead_when[2]: got "ttl/nine", which is no rule; write one of`,
		`c.yaml:13: classes[2].match[0]: must have a literal part, got "*"`,
		`c.yaml:15: rules[0].rule: must be one of`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no problem says %q; got:\n%s", want, got)
		}
	}
}

func TestProblemsOfClassFilesNameTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	main := filepath.Join(dir, "locksteward.yaml")
	write(t, main, minimal+"classes: [{class: one, match: ['a:*']}]\n")
	team := filepath.Join(dir, "classes.d", "team.yaml")
	write(t, team, "classes:\n  - {class: two, match: ['b:*']}\n  - class: three\n    match: ['a:b:*']\n")
	_, err := config.Load(main)
	if err == nil || !strings.HasPrefix(err.Error(), team+":4: classes[2].match: class \"three\" can never match") {
		t.Errorf("error %v", err)
	}
	if _, err := config.LoadRules(main); err == nil || !strings.HasPrefix(err.Error(), team+":4: ") {
		t.Errorf("LoadRules: error %v", err)
	}
}

func TestProblemsOfTheEnvironmentNameTheVariable(t *testing.T) {
	t.Setenv("LOCKSTEWARD_LOG_FORMAT", "xml")
	got := problems(t, minimal+"log: {format: json}\n")
	if len(got) != 1 || got[0] != `environment LOCKSTEWARD_LOG_FORMAT: log.format: got "xml", write json or console` {
		t.Errorf("got %q", got)
	}
}

// TestLoadRulesNeedsNoTargets: the rules of a configuration can be tested where
// its servers and secrets are not.
func TestLoadRulesNeedsNoTargets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, `
targets: [{name: a, url: "${NOT_SET_HERE}", password_file: /does/not/exist}]
alert: {receivers: [{name: ""}]}
classes: [{class: batch, match: ["batch:*"], dead_when: [custom/old]}]
rules: [{rule: custom/old, when: "lock.age > duration('1h')", classes: [batch]}]
redlock: [{name: payments, targets: [eu-1, eu-2, eu-3], classes: [batch]}]
`)
	by, err := config.LoadRules(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := by.Classes.Get("batch"); !ok || len(by.Rules) != 1 || len(by.Redlock) != 1 || by.Redlock[0].Targets[2] != "eu-3" {
		t.Errorf("read %+v", by)
	}
	write(t, file, "rules: [{rule: custom/old, when: \"lock.age\", wenn: x}]\nclassses: []\nredlock: [{name: r, targets: [a]}]\nmetrics: [1]")
	_, err = config.LoadRules(file)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"rules[0].wenn: unknown key", `classses: unknown key`, "c.yaml:1:", "redlock[0].targets: got 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "metrics") {
		t.Errorf("error %v speaks of what is not asked", err)
	}
	if _, err := config.LoadRules(filepath.Join(t.TempDir(), "none.yaml")); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("error %v", err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"targets: [{name: a, url: 'redis://h/0'}]\nstore: {dsn: 'postgres://u@h/db'}":                                                 "store.audit_key_file: empty, so that checkpoints of the audit trail are not signed",
		"targets: [{name: a, url: 'redis://h/0'}, {name: b, url: 'redis://h/1'}]":                                                     "",
		"targets: [{name: a, url: 'redis://h:6379/0'}, {name: b, url: 'rediss://H'}]":                                                 "targets[1].url: H:6379 database 0 is watched as targets[0] (a) already",
		"targets: [{name: a, url: 'redis://localhost'}, {name: b, url: 'redis://127.0.0.1'}]":                                         "targets[1].url",
		"targets: [{name: a, url: 'redis+cluster://a,b'}, {name: b, url: 'redis+cluster://c,b'}]":                                     "targets[1].url",
		"targets: [{name: a, url: 'redis+sentinel://s/one'}, {name: b, url: 'redis+sentinel://s/two'}]":                               "",
		"targets: [{name: a, url: 'unix:///tmp/a'}, {name: b, url: 'unix:///tmp/b'}, {name: c, url: 'redis+sentinel://localhost/m'}]": "",
		"targets_from: {files: ['/nowhere/*.yaml']}":                                                                                  "targets_from.files[0]: /nowhere/*.yaml matches no file",
	} {
		c, err := config.Parse("c", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(c.Warnings(), "\n")
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}

func at(file string, line, column int) string {
	return fmt.Sprintf("%s:%d:%d: ", file, line, column)
}

func unwrapAll(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}
