package backend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/formats"
	"github.com/locksteward/locksteward/store"
)

// TestLocksOfADeadHost: a bundle without a list has the locks on which holder/dead
// fires, and all that are stale once the host is lost; never one of a holder that
// lives, or of another host.
func TestLocksOfADeadHost(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "locksteward.yaml")
	text := fmt.Sprintf(`
targets: [{name: main, url: '%s'}]
classes: [{class: orders, match: ['lock:order:*'], release: approve}]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '%s'}
store: {dsn: 'sqlite:%s'}
`, srv.URL(), filepath.Join(dir, "users.yaml"), filepath.Join(dir, "store.db"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	classes, err := class.NewSet(cfg.Classes)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := rules.New(cfg.Rules, classes, formats.Facts)
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.OpenConfig(t.Context(), cfg.Store)
	if err != nil {
		t.Fatal(err)
	}
	set := targets.NewSet(engine, cfg, classes)
	w, err := targets.New(t.Context(), cfg.Targets[0], classes, targets.Deps{Log: zap.NewNop(), Engine: engine, Store: st, Hosts: &pace.Hosts{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
	set.Alter(func(next *targets.Snapshot) { next.Watched["main"] = w })
	b := New(Deps{Log: zap.NewNop(), Store: st, Targets: set, Engine: engine})
	for host, keys := range map[string][]string{"app-7": {"lock:order:1", "lock:order:2", "lock:order:3"}, "app-70": {"lock:order:4"}} {
		client, err := lock.New(rdb, lock.Options{App: "checkout", Host: host})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() }) // its locks are gone by then, or not: nobody asks
		for _, key := range keys {
			if _, err := client.Acquire(t.Context(), key, lock.Lease{TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func() {
		for _, key := range []string{"lock:order:1", "lock:order:2", "lock:order:3", "lock:order:4"} {
			if _, err := b.Lock(t.Context(), "main", 0, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	fires := func(rule, key, subject string) {
		engine.Restore([]locksteward.Finding{{
			Rule: rule, Status: locksteward.StatusFiring, Severity: locksteward.SeverityWarning, Target: "main", Key: key, Subject: subject,
			Since: time.Now(), FiredAt: time.Now(),
		}})
	}
	picked := func() string {
		keys, more, err := b.deadOn("main", "app-7")
		if err != nil {
			t.Fatal(err)
		}
		if len(more) != 0 {
			t.Errorf("left out: %+v", more)
		}
		return strings.Join(keys, " ")
	}

	look()
	if _, _, err := b.deadOn("main", "app-7"); !errors.Is(err, locksteward.ErrRefused) || !strings.Contains(err.Error(), "none of the 3 locks") {
		t.Errorf("of a host that lives: %v", err)
	}
	if _, _, err := b.deadOn("main", "app"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("of part of a name: %v", err)
	}
	if _, _, err := b.deadOn("other", "app-7"); !errors.Is(err, locksteward.ErrNotFound) {
		t.Errorf("of no target: %v", err)
	}
	fires("holder/dead", "lock:order:2", "")
	fires("holder/dead", "lock:order:4", "")
	if got := picked(); got != "lock:order:2" {
		t.Errorf("holder/dead on one: picked %q", got)
	}
	fires("host/lost", "", "app-70")
	if got := picked(); got != "lock:order:2" {
		t.Errorf("another host lost: picked %q", got)
	}
	// The heartbeats are gone: the locks are stale, of the lost host alone.
	for _, name := range rdb.Keys(t.Context(), "*:instance:*").Val() {
		rdb.Del(t.Context(), name)
	}
	look()
	if got := picked(); got != "lock:order:2" {
		t.Errorf("stale, and the host is not called lost: picked %q", got)
	}
	fires("host/lost", "", "app-7")
	if got := picked(); got != "lock:order:1 lock:order:2 lock:order:3" {
		t.Errorf("a lost host: picked %q", got)
	}
}
