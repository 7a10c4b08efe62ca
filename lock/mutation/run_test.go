package mutation

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// result is what became of a mutation.
type result struct {
	killed bool
	broken string        // why the run proves nothing; "" if it does
	took   time.Duration // of the tests alone
	by     string        // first test that failed
	passed string        // first test that should have failed
	words  string        // what it said
	output string
}

const (
	survived = "SURVIVED"
	broken   = "BROKEN"
)

func (r result) word() string {
	switch {
	case r.broken != "":
		return broken
	case !r.killed:
		return survived
	default:
		return "killed"
	}
}

// run builds the mutation's test program and runs its tests.
func (m mutation) run(t *testing.T) result {
	var r result
	files, err := m.apply(os.ReadFile)
	if err != nil {
		r.broken = err.Error()
		return r
	}
	program, output, err := build(t, m.pkg, m.race, files)
	if err != nil {
		r.broken, r.output = "does not compile", output
		return r
	}
	began := time.Now()
	output, _ = execute(t, program, m.pkg, m.pattern(), m.timeout)
	r = m.judge(output)
	r.took = time.Since(began)
	return r
}

var (
	failLine  = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+) \(`)
	passLine  = regexp.MustCompile(`(?m)^ *--- PASS: (\S+) \(`)
	panicLine = regexp.MustCompile(`(?m)^(panic:|fatal error:).*`)
)

// judge reads what the test program printed.
func (m mutation) judge(output string) result {
	r := result{output: output}
	if p := panicLine.FindString(output); p != "" {
		r.broken = "no assertion fails: " + p
		return r
	}
	var failed []string
	for _, f := range failLine.FindAllStringSubmatch(output, -1) {
		failed = append(failed, f[1])
	}
	for _, name := range m.tests {
		if !slices.Contains(failed, name) {
			r.passed = name
			return r
		}
	}
	r.by = failed[0]
	r.words = strings.TrimSpace(m.says.FindString(output))
	if r.words == "" {
		r.broken = fmt.Sprintf("its tests fail, but none says %q", m.says)
		return r
	}
	r.killed = true
	return r
}

// control runs all that kills mutations without a mutation.
func control(t *testing.T, list []mutation) {
	tests := map[string]map[string]bool{} // by package
	for _, m := range list {
		if tests[m.pkg] == nil {
			tests[m.pkg] = map[string]bool{}
		}
		for _, name := range m.tests {
			tests[m.pkg][name] = true
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		program, output, err := build(t, pkg, false, nil)
		if err != nil {
			t.Fatalf("%s does not compile:\n%s", pkg, output)
		}
		names := slices.Sorted(maps.Keys(tests[pkg]))
		began := time.Now()
		output, err = execute(t, program, pkg, mutation{tests: names}.pattern(), 10*time.Minute)
		passed := map[string]bool{}
		for _, p := range passLine.FindAllStringSubmatch(output, -1) {
			passed[p[1]] = true
		}
		for _, name := range names {
			if !passed[name] {
				t.Errorf("%s: %s does not pass without a mutation", pkg, name)
			}
		}
		if err != nil || t.Failed() {
			t.Errorf("%s without a mutation: %v\n%s", pkg, err, indent(output))
		}
		t.Logf("%s: %d tests pass without a mutation in %s", pkg, len(names), seconds(time.Since(began)))
	}
}

// build compiles the test program of pkg with some files replaced.
func build(t *testing.T, pkg string, race bool, files map[string]string) (program, output string, err error) {
	t.Helper()
	dir := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for name, text := range files {
		place := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(place, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(top, filepath.FromSlash(name))] = place
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(place, list, 0o644); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "mutation.test")
	args := []string{"test", "-c", "-vet=off", "-overlay", place, "-o", program}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, pkg)...)
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	return program, string(out), err
}

// execute runs a test program as go test would.
func execute(t *testing.T, program, pkg, pattern string, timeout time.Duration) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-test.run", pattern, "-test.v", "-test.timeout", timeout.String())
	cmd.Dir = filepath.Join(root, filepath.FromSlash(pkg))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pattern matches the mutation's tests and nothing else.
func (m mutation) pattern() string {
	parts := make([]string, 0, len(m.tests))
	for _, name := range m.tests {
		var words []string
		for word := range strings.SplitSeq(name, "/") {
			words = append(words, "^"+regexp.QuoteMeta(word)+"$")
		}
		parts = append(parts, strings.Join(words, "/"))
	}
	return strings.Join(parts, "|")
}

// What counts as a kill, and what does not.
func TestJudge(t *testing.T) {
	t.Parallel()
	m := mutation{tests: []string{"TestX", "TestY/z"}, says: regexp.MustCompile(`wrong number`)}
	const all = "--- FAIL: TestX (0.10s)\n    x_test.go:1: wrong number\n--- FAIL: TestY (0.00s)\n    --- FAIL: TestY/z (0.00s)\n        y_test.go:2: other\n"
	for name, tc := range map[string]struct {
		output string
		word   string
	}{
		"killed":        {all, "killed"},
		"all pass":      {"PASS\n", survived},
		"one passes":    {"--- FAIL: TestX (0.10s)\n    x_test.go:1: wrong number\n--- PASS: TestY (0.00s)\nFAIL\n", survived},
		"other words":   {strings.Replace(all, "wrong", "odd", 1), broken},
		"hangs":         {all + "panic: test timed out after 1m0s\n", broken},
		"crashes":       {all + "fatal error: all goroutines are asleep - deadlock!\n", broken},
		"leak alone":    {"PASS\ngoleak: Errors on successful test run\n", survived},
		"skips":         {"--- SKIP: TestX (0.00s)\n", survived},
		"empty":         {"", survived},
		"wrong one":     {"--- FAIL: TestXX (0.10s)\n wrong number\n", survived},
		"log in a line": {"x --- FAIL: TestX (0.10s)\nwrong number\n", survived},
	} {
		if r := m.judge(tc.output); r.word() != tc.word {
			t.Errorf("%s: %s, want %s", name, r.word(), tc.word)
		}
	}
}
