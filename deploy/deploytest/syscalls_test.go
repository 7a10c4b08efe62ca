package deploytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tolerated are calls that the unit's filter refuses and the program can do without.
var tolerated = []string{
	"prlimit64", // Go raises the soft limit of open files at the start, and goes on if it may not
}

// The agent, traced through start, sweeps, scrapes and stop, makes no call that the
// unit's SystemCallFilter refuses. There is no systemd here to run it under.
func TestUnitAllowsTheAgentsCalls(t *testing.T) {
	t.Parallel()
	analyze, strace := lookPath(t, "systemd-analyze"), optional(t, "strace")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: to run the program as another user needs root")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(filepath.Join(dir, "own"), 0o700), os.Chown(filepath.Join(dir, "own"), nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, port: freePort(t)}
	config := put(t, dir, "locksteward.yaml", fmt.Sprintf(`
targets: [{name: main, url: "redis://127.0.0.1:%d", schedule: "@every 1s"}]
metrics: {listen: "127.0.0.1:%d"}
console: {listen: "127.0.0.1:%d"}
`, redis(t), m.port, freePort(t)))
	if err := os.Chmod(config, 0o644); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "own", "trace")
	var log buffer
	cmd := exec.CommandContext(context.Background(), strace, "-f", "-qq", "-o", trace, binary(t), "run", "--config", config)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(dir, "own"), &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func(s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
	t.Cleanup(func() { stop(syscall.SIGKILL) })
	until(t, "the traced agent runs", func() (string, bool) {
		said, code := fetch(fmt.Sprintf("http://127.0.0.1:%d/-/ready", m.port))
		if strings.Contains(log.String(), "ptrace") {
			t.Skipf("SKIPPED: nothing may be traced here: %s", log.String())
		}
		return said + log.String(), code == 200
	})
	m.sweeps("main")
	stop(syscall.SIGHUP) // a reload
	until(t, "the reload is over", func() (string, bool) { return log.String(), strings.Contains(log.String(), "reload") })
	stop(syscall.SIGTERM)
	_ = cmd.Wait()

	used := map[string]bool{}
	for _, call := range regexp.MustCompile(`(?m)^\d+ +(?:<\.\.\. )?([a-z0-9_]+)(?:\(| resumed)`).FindAllSubmatch(must(t, trace), -1) {
		used[string(call[1])] = true
	}
	if !used["epoll_pwait"] || !used["fsync"] {
		t.Fatalf("the trace has only %v", slices.Sorted(maps.Keys(used)))
	}
	text, _ := unit(t)
	may := filtered(t, analyze, text)
	for _, call := range slices.Sorted(maps.Keys(used)) {
		if !may[call] && !slices.Contains(tolerated, call) {
			t.Errorf("the agent calls %s, which the unit's SystemCallFilter refuses", call)
		}
	}
	t.Logf("%d different calls", len(used))
}

// filtered are the calls that a unit's SystemCallFilter lets through, by the sets of
// this machine's systemd.
func filtered(t *testing.T, analyze, text string) map[string]bool {
	t.Helper()
	said, err := command(t, analyze, "--no-pager", "syscall-filter")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	sets, name := map[string][]string{}, ""
	for line := range strings.Lines(said) {
		entry := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "@"):
			name = entry
		case strings.HasPrefix(line, " ") && entry != "" && !strings.HasPrefix(entry, "#"):
			sets[name] = append(sets[name], entry)
		}
	}
	may := map[string]bool{}
	var apply func(entry string, on bool)
	apply = func(entry string, on bool) {
		if !strings.HasPrefix(entry, "@") {
			may[entry] = on
			return
		}
		if len(sets[entry]) == 0 {
			t.Errorf("systemd knows no set %s", entry)
		}
		for _, e := range sets[entry] {
			apply(e, on)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch(text, -1) {
		for entry := range strings.FieldsSeq(m[2]) {
			apply(entry, m[1] == "")
		}
	}
	return may
}

// optional finds a tool that no script installs, or skips the test.
func optional(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED: no %s on this machine", name)
	}
	return path
}
