package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/apiclient"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/source/redis/acl"
)

const tooManyRights = "the user of the target has more rights than it needs"

// The scanner that `locksteward acl` makes is enough for sweep and watch: nothing
// is refused and nothing warned of.
func TestAgentWithTheLeastRights(t *testing.T) {
	t.Parallel()
	v, err := acl.ParseVersion(testredis.Version(t).String())
	if err != nil {
		t.Skip(err)
	}
	u, err := acl.Scanner(v, acl.Scan{Hash: acl.Hash("pw")})
	if err != nil {
		t.Fatal(err)
	}
	srv := testredis.Start(t, testredis.WithACL(u.FileLine()))
	admin := srv.Client(t)
	ctx := t.Context()
	put := func(name string) {
		t.Helper()
		now := time.Now().UnixMilli()
		value := record.Value(strings.ToUpper(name), "secret")
		meta := record.Meta{V: record.Version, ID: strings.ToUpper(name), Instance: "gone", App: "billing", Acquired: now, TTL: 60_000}
		for _, cmd := range [][]any{
			{"set", "lock:" + name, value, "px", 60_000},
			{"set", record.Companion(record.DefaultPrefix, record.KindHold, "lock:"+name), meta.Encode()},
			{"hset", "lock:redisson:" + name, "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37", "1"},
			{"zadd", "sem:" + name + ":lock", "1794970000000", "permit"},
			{"sadd", "set:" + name + ":lock", "a"},
			{"rpush", "list:" + name + ":lock", "a"},
		} {
			if err := admin.Do(ctx, cmd...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("before")
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, []byte("pw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, "targets: [{name: main, url: '"+srv.URL()+"', schedule: '@every 1s', username: scanner, password_file: '"+file+"'}]")
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	b.awaitMetric(`locksteward_watch_mode{mode="tracking",target="main"} 1`)
	put("after")
	testredis.Eventually(t, within, func() bool {
		list, err := b.ana.Locks(ctx, apiclient.LocksQuery{})
		if err != nil {
			return false
		}
		for _, l := range list.Locks {
			if l.Key.Key == "lock:after" {
				return true
			}
		}
		return false
	}, "the watch does not see a new lock")
	if log, err := admin.Do(ctx, "acl", "log").Slice(); err != nil || len(log) != 0 {
		t.Errorf("the server refused %v, %v", log, err)
	}
	if n := b.logs.FilterMessage(tooManyRights).Len(); n != 0 {
		t.Error("warned of a user that may only look")
	}
	for _, e := range b.logs.All() {
		for _, value := range e.ContextMap() {
			if text, ok := value.(string); ok && strings.Contains(text, "NOPERM") {
				t.Errorf("logged %s: %s", e.Message, text)
			}
		}
	}
}

// A user that may do everything is warned of once, and not again when the target
// comes back.
func TestAgentWarnsOfTooManyRights(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	b := newBed(t, target(srv.URL()))
	warned := func() int { return b.logs.FilterMessage(tooManyRights).Len() }
	testredis.Eventually(t, within, func() bool { return warned() == 1 }, "no warning")
	entry := b.logs.FilterMessage(tooManyRights).All()[0].ContextMap()
	if hint := entry["hint"].(string); !strings.Contains(hint, "everything") || !strings.Contains(hint, "locksteward acl") {
		t.Errorf("hint = %q", hint)
	}
	srv.Kill()
	b.awaitMetric(`locksteward_target_up{target="main"} 0`)
	srv.Restart()
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	if n := warned(); n != 1 {
		t.Errorf("warned %d times", n)
	}
}
