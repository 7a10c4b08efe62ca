package lock_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
		if name := "`" + record.Companion(record.DefaultPrefix, record.KindHold, key) + "`"; !strings.Contains(string(doc), name) {
			t.Errorf("docs/wire-format.md does not have %s", name)
		}
	}
	if fence := record.FenceKey(record.DefaultPrefix, "lock:order:42"); !strings.Contains(string(doc), "'"+fence+"'") {
		t.Errorf("docs/wire-format.md does not have %s", fence)
	}
	most := record.Meta{
		V: 2, ID: "x", Seq: 1, Session: "x", Instance: "x", App: "x", Host: "x", PID: 1, Class: "x", Purpose: "x", Acquired: 1, TTL: 1, RenewEvery: 1,
		Expect: 1, MaxHold: 1, EndsWithHeartbeat: 1, Renewed: 1, Renewals: 1, RenewFailures: 1, Progress: 1, Fence: 1, Holds: 1,
		Holding: []string{"x"}, Trace: "x", Lost: &record.Lost{ID: "x"}, Offered: 1, Free: 1,
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(most.Encode()), &members); err != nil || len(members) < 26 {
		t.Fatalf("%d members, %v", len(members), err)
	}
	for name := range members {
		if !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/wire-format.md does not name member %s", name)
		}
	}
}

// Where the server cannot count receivers, as a Cluster before 7.0, the lock is
// free after a release with a queue, and nobody receives that it was handed over.
func TestNoHandoffIsPublishedForAFreeLock(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "sharded channels, which an ACL can deny")
	srv := testredis.Start(t, testredis.WithACL("app on >secret ~* &* +@all -spublish -pubsub|shardnumsub"))
	rdb := srv.Client(t)
	if err := rdb.Set(t.Context(), "k", record.Value("A", "secret"), time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	enqueue(t, rdb, "k", "HEAD", "far", "NONCE", time.Minute)
	names := record.NamesOf(record.DefaultPrefix, "k")
	ps := rdb.Subscribe(t.Context(), names.Wake+":far")
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile("release.lua")
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"k", names.Hold, names.Fence, names.Queue, names.Waiter}
	app := srv.ClientAs(t, "app", "secret")
	if freed, err := app.Eval(t.Context(), string(release), keys, record.Value("A", "secret"), "SPUBLISH").Int(); freed != 1 || err != nil {
		t.Fatalf("release: %d, %v", freed, err)
	}
	if n := rdb.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("the lock is not free")
	}
	for message := ""; message != "turn HEAD 0"; {
		m, err := ps.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if message = m.Payload; strings.HasPrefix(message, "yours ") {
			t.Errorf("received %q for a free lock", message)
		}
	}
}
