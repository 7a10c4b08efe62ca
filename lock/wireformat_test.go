package lock_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// The worked example of docs/wire-format.md is run as it stands. Long numbers
// are times and fences, and may be any.
func TestWireFormatExample(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("redis-cli is not installed (hint: make deps)")
	}
	srv := testredis.Start(t)
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	shim := fmt.Sprintf("#!/bin/sh\nexec %q -h %q -p %q \"$@\"\n", cli, host, port)
	if err := os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(shim), 0o755); err != nil {
		t.Fatal(err)
	}
	long := regexp.MustCompile(`[0-9]{10,}`)
	commands := 0
	for _, block := range blocks(string(doc)) {
		for _, part := range strings.Split(block, "$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = ".."
			cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			got := long.ReplaceAllString(strings.TrimSpace(string(out)), "#")
			if want := long.ReplaceAllString(strings.TrimSpace(want), "#"); err != nil || got != want {
				t.Errorf("$ %s\n%s\n(%v), want\n%s", command, out, err, want)
			}
			commands++
		}
	}
	if commands == 0 {
		t.Error("no command found: the example has moved")
	}
}

// blocks returns the console blocks of a Markdown text.
func blocks(doc string) []string {
	var list []string
	for _, part := range strings.Split(doc, "```console\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		list = append(list, block)
	}
	return list
}

// The names of its tables are those of the code.
func TestWireFormatNames(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/wire-format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"lock:order:42", "{user:7}:lock", "{a}", "order}42"} {
		if name := "`" + record.Companion(record.DefaultPrefix, record.KindMeta, key) + "`"; !strings.Contains(string(doc), name) {
			t.Errorf("docs/wire-format.md does not have %s", name)
		}
	}
	if fence := record.FenceKey(record.DefaultPrefix, "lock:order:42"); !strings.Contains(string(doc), "'"+fence+"'") {
		t.Errorf("docs/wire-format.md does not have %s", fence)
	}
	m := record.Meta{
		V: 1, ID: "x", Session: "x", Instance: "x", App: "x", Host: "x", PID: 1, Class: "x", Purpose: "x", Acquired: 1, TTL: 1, RenewEvery: 1,
		Expect: 1, MaxHold: 1, Renewed: 1, Renewals: 1, RenewFailures: 1, Progress: 1, Fence: 1, Holds: 1, Contended: 1,
		Holding: []string{"x"}, Trace: "x", Lost: &record.Lost{ID: "x"},
	}
	fields := m.Fields()
	if len(fields) != 2*24 {
		t.Errorf("%d fields", len(fields)/2)
	}
	for i := 0; i < len(fields); i += 2 {
		if !strings.Contains(string(doc), "`"+fields[i].(string)+"`") {
			t.Errorf("docs/wire-format.md does not name field %s", fields[i])
		}
	}
}
