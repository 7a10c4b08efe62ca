package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
)

func TestTooManyClasses(t *testing.T) {
	t.Parallel()
	text := func(classes int) []byte {
		var b strings.Builder
		b.WriteString("targets: [{name: a, url: 'redis://127.0.0.1'}]\nclasses:\n")
		for n := range classes {
			fmt.Fprintf(&b, "- {class: c%d, match: ['c%d:*']}\n", n, n)
		}
		return []byte(b.String())
	}
	if _, err := config.Parse("c", text(500)); err != nil {
		t.Errorf("500 classes: %v", err)
	}
	const want = "classes: got 501, write at most 500: one class can match many patterns"
	if _, err := config.Parse("c", text(501)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("501 classes: %v, want %q", err, want)
	}
}

func TestExampleIsTheDefaults(t *testing.T) {
	t.Parallel()
	got, err := config.Parse("config.example.yaml", []byte(locksteward.ExampleConfig))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	target := config.DefaultTarget()
	target.Name, target.URL = "redis", "redis://127.0.0.1:6379/0"
	want.Targets = []config.Target{target}
	if len(got.Targets) == 1 && len(got.Targets[0].RedisScan.MetaPrefixes) == 0 {
		got.Targets[0].RedisScan.MetaPrefixes = nil
	}
	for name, list := range map[string]reflect.Value{
		"classes": reflect.ValueOf(got.Classes), "rules": reflect.ValueOf(got.Rules), "receivers": reflect.ValueOf(got.Alert.Receivers),
		"redlock": reflect.ValueOf(got.Redlock), "audit sinks": reflect.ValueOf(got.Audit.Sinks),
		"files of targets": reflect.ValueOf(got.Sources.Files), "srv": reflect.ValueOf(got.Sources.SRV),
		"allowed hosts": reflect.ValueOf(got.Metrics.AllowedHosts),
	} {
		if list.Len() != 0 {
			t.Errorf("the example has %d %s, want none", list.Len(), name)
		}
	}
	got.Classes, got.Rules, got.Alert.Receivers, got.Redlock = want.Classes, want.Rules, want.Alert.Receivers, want.Redlock
	got.Audit.Sinks, got.Sources, got.Metrics.AllowedHosts = want.Audit.Sinks, want.Sources, want.Metrics.AllowedHosts
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the example is not the defaults:\n got %+v\nwant %+v", got, want)
	}
}

// uncommented returns the example with the lines that "#:" hides, in place of
// the empty values they stand for.
func uncommented() string {
	var out []string
	lines := strings.Split(locksteward.ExampleConfig, "\n")
	hidden := regexp.MustCompile(`^( *)#: ?(.*)$`)
	empty := regexp.MustCompile(`^( *[a-z_]+:) (\[\]|null)$`)
	for i, line := range lines {
		switch m := hidden.FindStringSubmatch(line); {
		case m != nil:
			out = append(out, m[1]+m[2])
		case i > 0 && hidden.MatchString(lines[i-1]) && empty.MatchString(line):
			// The value that the hidden line before replaces.
		case i+1 < len(lines) && hidden.MatchString(lines[i+1]) && empty.MatchString(line):
			out = append(out, empty.FindStringSubmatch(line)[1])
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// Everything the example shows in comments is real: it decodes strictly. Files
// that it names are not there, and nothing else is wrong.
func TestExampleCommentsAreValid(t *testing.T) {
	t.Parallel()
	text := uncommented()
	_, err := config.Parse("example", []byte(strings.Replace(text, `url: ""`, "", 1)))
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.Contains(line, "no such file") {
			t.Errorf("unexpected problem: %s\nin:\n%s", line, text)
		}
	}
}

// Every key of the configuration stands in the example.
func TestExampleHasEveryKey(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ *(?:- )?([a-z_]+):`).FindAllStringSubmatch(uncommented(), -1) {
		have[m[1]] = true
	}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() == "time" {
			return
		}
		for f := range typ.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			if options == "inline" {
				walk(f.Type, path)
				continue
			}
			if name == "" {
				t.Errorf("%s.%s has no yaml key", path, f.Name)
			} else if !have[name] && path != "targets.release_credentials" {
				t.Errorf("the example does not show %s.%s", path, name)
			}
			walk(f.Type, strings.TrimPrefix(path+"."+name, "."))
		}
	}
	walk(reflect.TypeFor[config.Config](), "")
}

// problems checks a configuration and returns its problems.
func problems(t *testing.T, text string) []string {
	t.Helper()
	_, err := config.Parse("c.yaml", []byte(text))
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/bad-everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := problems(t, string(raw))
	for _, want := range []string{
		`c.yaml:2: targets[0].nmae: unknown key (got "x"), did you mean "name"?`,
		`targets[0].pace.busy:`,
		`targets[0].timeout: got "soon", write a duration`,
		`classes[0].match: got "lock:*", write a list`,
		`console.listen: the key stands twice`,
		`metrics: got a list, write a mapping`,
		`store.passwrd: unknown key (got <secret>)`,
		`alert.receivers[0].timeout: got a list`,
	} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("no problem says %q; got:\n%s", want, strings.Join(got, "\n"))
		}
	}
	if strings.Contains(strings.Join(got, ""), "hunter2") {
		t.Error("a value that may be a password is shown")
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/bad-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(problems(t, string(raw)), "\n")
	for _, want := range []string{
		"targets[0].name", "targets[0].url", "targets[0].schedule", "targets[0].pace.idle",
		"targets[1].name", "targets[1].password_file", "targets[1].url",
		"classes[0].match", "classes[1].release", "classes[0].dead_when[0]",
		"rules[0].rule", "alert.receivers[0]", "release.request_ttl", "store.dsn", "console.listen", "log.level", "log.format",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no problem names %s; got:\n%s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Error("a password is shown")
	}
}

func TestEmptyIsMissingTargetsAlone(t *testing.T) {
	t.Parallel()
	got := problems(t, "")
	if len(got) != 1 || !strings.Contains(got[0], "targets: empty") {
		t.Errorf("problems of an empty file: %q", got)
	}
}

func TestNotYAML(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"targets: [", "\ttargets: []", "a: b\n---\nc: d"} {
		if got := problems(t, text); len(got) == 0 || !strings.Contains(got[0], "c.yaml") {
			t.Errorf("%q: problems %q, want one that names the file", text, got)
		}
	}
}

const minimal = "targets: [{name: a, url: 'redis://127.0.0.1'}]\n"

func TestClassesD(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "locksteward.yaml"), minimal+"classes: [{class: one, match: ['a:*']}]\n")
	write(t, filepath.Join(dir, "classes.d", "b.yaml"), "classes: [{class: three, match: ['c:*']}]\n")
	write(t, filepath.Join(dir, "classes.d", "a.yaml"), "classes: [{class: two, match: ['b:*']}]\n")
	c, err := config.Load(filepath.Join(dir, "locksteward.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, cl := range c.Classes {
		names = append(names, cl.Name)
	}
	if !slices.Equal(names, []string{"one", "two", "three"}) {
		t.Errorf("classes = %v", names)
	}
	write(t, filepath.Join(dir, "classes.d", "c.yaml"), "classes: [{class: four, macht: ['c:*']}]\n")
	_, err = config.Load(filepath.Join(dir, "locksteward.yaml"))
	if err == nil || !strings.Contains(err.Error(), "c.yaml:1: classes[0].macht") {
		t.Errorf("error = %v, want the file, line and key", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("LOCKSTEWARD_METRICS_TOP_LOCKS", "50")
	t.Setenv("LOCKSTEWARD_RELEASE_PAUSED", "true")
	t.Setenv("LOCKSTEWARD_CONSOLE_LISTEN", "127.0.0.1:9")
	t.Setenv("LOCKSTEWARD_SERVICE_HOST", "10.0.0.1") // set by Kubernetes for a service of our name
	t.Setenv("REDIS_HOST", "example.test")
	c, err := config.Parse("c", []byte("targets: [{name: a, url: 'redis://${REDIS_HOST}'}]\nmetrics: {top_locks: 70}"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Metrics.TopLocks != 50 || !c.Release.Paused || c.Console.Listen != "127.0.0.1:9" || c.Targets[0].URL != "redis://example.test" {
		t.Errorf("configuration = %+v", c)
	}
	t.Setenv("LOCKSTEWARD_METRICS_TOP_LOCKS", "many")
	got := problems(t, "targets: [{name: a, url: '${NOT_SET_ANYWHERE}'}]")
	text := strings.Join(got, "\n")
	if !strings.Contains(text, "LOCKSTEWARD_METRICS_TOP_LOCKS") || !strings.Contains(text, "NOT_SET_ANYWHERE is not set") {
		t.Errorf("problems = %s", text)
	}
}

func TestReadSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pw")
	write(t, file, "hunter2\r\nsecond line\n")
	s, err := config.ReadSecret(file)
	if err != nil || s.Reveal() != "hunter2" {
		t.Errorf("ReadSecret = %q, %v", s.Reveal(), err)
	}
	if s, err := config.ReadSecret(""); err != nil || s != "" {
		t.Errorf("ReadSecret of no file = %v, %v", s, err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(locksteward.ExampleConfig))
	f.Add([]byte(minimal))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("targets: &t [{name: *t}]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := config.Parse("f", raw)
		if err == nil && len(c.Targets) == 0 {
			t.Error("a configuration without targets is valid")
		}
	})
}

// TestUnreadableValueHidesNoOtherProblem: what cannot be read is reported together
// with what can be read and is wrong, and without consequences of its own.
func TestUnreadableValueHidesNoOtherProblem(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("x.yaml", []byte(`
targets:
  - {name: "a b", url: "redis://h:6379", jitter: soon}
classes: nothing
rules: [{rule: nope}]
release: {request_ttl: 1s, paused: perhaps}
log: {level: loud}
`))
	invalid, ok := errors.AsType[*config.InvalidError](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, p := range invalid.Problems {
		// "x.yaml:3: targets[0].jitter: …" or "x.yaml: targets[0].name: …"
		_, rest, _ := strings.Cut(p.Error(), ": ")
		path, _, _ := strings.Cut(rest, ": ")
		got = append(got, path)
	}
	want := []string{"targets[0].jitter", "classes", "release.paused", "targets[0].name", "rules[0].rule", "release.request_ttl", "log.level"}
	if !slices.Equal(got, want) {
		t.Errorf("problems at\n%q, want\n%q\n%v", got, want, err)
	}
}

// The masters of a Redlock are targets that exist, each in one place; what is
// wrong with them stands beside all other problems.
func TestRedlockProblems(t *testing.T) {
	t.Parallel()
	const targets = `targets:
  - {name: a, url: "redis://127.0.0.1:1/0"}
  - {name: b, url: "redis://127.0.0.1:2/0"}
  - {name: c, url: "redis://127.0.0.1:3/0"}
`
	if got := problems(t, targets+"redlock: [{name: r, targets: [a, b, c], classes: [default]}]"); got != nil {
		t.Errorf("refused: %q", got)
	}
	got := problems(t, targets+"redlock: [{name: r, targets: [a, b, nope]}]\nlog: {level: loud}")
	if len(got) != 2 || !strings.Contains(got[0], `redlock[0].targets[2]: got "nope", which is no target; write one of a, b, c`) {
		t.Errorf("got %q", got)
	}
}
