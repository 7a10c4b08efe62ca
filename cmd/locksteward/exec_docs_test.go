package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// docServer is the server in the examples of docs/exec.md.
const docServer = "redis://127.0.0.1:6379"

// execDocs returns the code blocks of docs/exec.md in one language, with the
// address of a real server.
func execDocs(t *testing.T, language, url string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/exec.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		out = append(out, strings.ReplaceAll(m[1], docServer, url))
	}
	if len(out) == 0 {
		t.Fatalf("docs/exec.md has no %s", language)
	}
	return out
}

// execDocsBed has the commands of the examples: each writes down what it was told.
func execDocsBed(t *testing.T) (url string, rdb *redis.Client, dir string) {
	t.Helper()
	srv := testredis.Start(t)
	dir = t.TempDir()
	for _, name := range []string{"backup.sh", "report.sh", "deploy-step"} {
		script := "#!/bin/sh\necho \"" + name + " $LOCKSTEWARD_LOCK_KEY $LOCKSTEWARD_FENCE $*\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil { //nolint:gosec // A program.
			t.Fatal(err)
		}
	}
	return srv.URL()[:strings.LastIndex(srv.URL(), "/")], srv.Client(t), dir
}

// inShell runs a line as cron does, in dir, and returns its exit code.
func inShell(t *testing.T, dir, line string) (string, int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestExecDocsCron(t *testing.T) {
	t.Parallel()
	url, rdb, dir := execDocsBed(t)
	fields := regexp.MustCompile(`\s+`).Split(strings.TrimSpace(execDocs(t, "crontab", url)[0]), 6)
	line := fields[5]
	if out, code := inShell(t, dir, line); code != 0 || out != "" {
		t.Errorf("exit code %d, output %q", code, out)
	}
	log, err := os.ReadFile(filepath.Join(dir, "backup.log"))
	if err != nil || !strings.HasPrefix(string(log), "backup.sh lock:backup ") {
		t.Fatalf("log %q, %v", log, err)
	}
	// Another host was first: no mail, no failure, and nothing was done.
	if err := rdb.Set(t.Context(), "lock:backup", "another", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if out, code := inShell(t, dir, line); code != 0 || out != "" {
		t.Errorf("held: exit code %d, output %q", code, out)
	}
	if again, _ := os.ReadFile(filepath.Join(dir, "backup.log")); string(again) != string(log) {
		t.Errorf("held: it ran: %s", again)
	}
}

func TestExecDocsTimer(t *testing.T) {
	t.Parallel()
	url, rdb, dir := execDocsBed(t)
	unit := execDocs(t, "systemd", url)[0]
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)[1]
	out, code := inShell(t, dir, start)
	if code != 0 || !strings.HasPrefix(out, "report.sh lock:report ") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if err := rdb.Set(t.Context(), "lock:report", "another", 0).Err(); err != nil {
		t.Fatal(err)
	}
	// What the unit calls a success is what it gets.
	if out, code = inShell(t, dir, start); code != execHeld || !strings.Contains(unit, "SuccessExitStatus=75") {
		t.Errorf("held: exit code %d, output %q", code, out)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd-analyze here: the units are not verified")
		return
	}
	self, err := exec.LookPath("locksteward")
	if err != nil {
		t.Fatal(err)
	}
	unit = strings.Replace(unit, "ExecStart=locksteward", "ExecStart="+self, 1)
	for name, text := range map[string]string{"report.service": unit, "report.timer": execDocs(t, "systemd-timer", url)[0]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"report.service", "report.timer"} {
		said, _ := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, name)).CombinedOutput()
		for l := range strings.Lines(string(said)) {
			if strings.Contains(l, name) { // other lines are about other units of this machine
				t.Errorf("systemd-analyze verify: %s", l)
			}
		}
	}
}

func TestExecDocsDeploy(t *testing.T) {
	t.Parallel()
	url, rdb, dir := execDocsBed(t)
	scripts := execDocs(t, "sh", url)
	i := slices.IndexFunc(scripts, func(s string) bool { return strings.HasPrefix(s, "#!/bin/sh") })
	if err := os.WriteFile(filepath.Join(dir, "deploy"), []byte(scripts[i]), 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
	out, code := inShell(t, dir, "./deploy v1.2")
	if code != 0 || !regexp.MustCompile(`^deploying v1.2 with fence (\d+)\ndeploy-step lock:deploy \d+ --revision v1.2 --fence \d+\n$`).MatchString(out) {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if n := rdb.Exists(t.Context(), "lock:deploy").Val(); n != 0 {
		t.Error("the lock is left")
	}
	// The first example of the page.
	if out, code := inShell(t, dir, strings.Replace(scripts[0], "./report.sh", "report.sh", 1)); code != 0 || !strings.HasSuffix(out, " --month 11\n") {
		t.Errorf("exit code %d, output %q", code, out)
	}
}
