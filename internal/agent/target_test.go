package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/agent"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// down waits until the target is down and returns the reason. What is held back for it is held back from the end of a sweep
// on, which is a moment later.
func (b *bed) down() string {
	b.t.Helper()
	var reason string
	testredis.Eventually(b.t, within, func() bool {
		list, err := b.ana.Targets(b.t.Context())
		if err != nil || len(list.Targets) != 1 || list.Targets[0].Up || strings.Contains(list.Targets[0].Reason, "not contacted yet") {
			return false
		}
		reason = list.Targets[0].Reason
		last := list.Targets[0].LastSweep
		return last != nil && !last.Complete
	}, "the target is not reported down")
	return reason
}

func TestTargetAwayAndBack(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	srv.Kill()
	b := newBed(t, target(srv.URL()))
	if reason := b.down(); !strings.Contains(reason, "refused") {
		t.Errorf("reason = %q", reason)
	}
	b.awaitMetric(`locksteward_target_up{target="main"} 0`)
	srv.Restart()
	b.awaitMetric(`locksteward_target_up{target="main"} 1`)
	b.awaitMetric(`locksteward_sweep_complete{target="main"} 1`)
	srv.Kill()
	b.awaitMetric(`locksteward_target_up{target="main"} 0`)
}

func TestPasswordsStayInside(t *testing.T) {
	t.Parallel()
	const right, wrong = "canary-right-4711", "canary-wrong-0815"
	srv := testredis.Start(t, testredis.WithConfig("requirepass "+right))
	for name, tc := range map[string]struct{ password, want string }{
		"none":  {"", "password"},
		"wrong": {wrong, "password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pw")
			if err := os.WriteFile(file, []byte(tc.password+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newBed(t, "targets: [{name: main, url: '"+srv.URL()+"', schedule: '@every 1s', password_file: '"+file+"'}]")
			if reason := b.down(); !strings.Contains(strings.ToLower(reason), tc.want) {
				t.Errorf("reason = %q, want %q in it", reason, tc.want)
			}
			if out := b.everything(); strings.Contains(out, "canary-") {
				t.Error("a password got out")
			}
		})
	}
}

func TestRefusedCommandIsTheReason(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on nopass ~* &* +@all -scan"))
	b := newBed(t, "targets: [{name: main, url: '"+srv.URL()+"', schedule: '@every 1s', username: scanner}]")
	if reason := b.down(); !strings.Contains(strings.ToLower(reason), "scan") {
		t.Errorf("reason = %q, want the command in it", reason)
	}
}

// An age and the finding of a lock go on over a restart of the agent, and
// nobody is notified twice.
func TestRestartKeepsWhatWasKnown(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	set(t, srv.Client(t), "lock:order:1", token, 0)
	s := newSink(t)
	b := newBed(t, target(srv.URL())+orders+
		"alert: {first_sweep: fire, grouping: {by: [fingerprint], wait: 0s, interval: 0s}, receivers: [{name: ops, kind: webhook, url: '"+s.url+"', allow_private: true}]}")
	testredis.Eventually(t, within, func() bool { return len(s.got()) == 1 }, "not reported")
	first := func() time.Time {
		var seen time.Time
		testredis.Eventually(t, within, func() bool {
			d, err := b.ana.Lock(t.Context(), "main", nil, "lock:order:1", "en")
			seen = d.History.FirstSeen
			return err == nil && d.History.Looks > 1 && len(d.Findings) > 0
		}, "the lock is not known")
		return seen
	}
	// Histories are kept of holds that were seen for longer than 5 s.
	testredis.Eventually(t, within, func() bool {
		d, err := b.ana.Lock(t.Context(), "main", nil, "lock:order:1", "en")
		return err == nil && d.History.LastSeen.Sub(d.History.FirstSeen) > 7*time.Second
	}, "the lock does not age")
	before := first()
	b.stop()
	b.start()
	if after := first(); !after.Equal(before) {
		t.Errorf("first seen %s before the restart, %s after it", before, after)
	}
	if n := len(s.got()); n != 1 {
		t.Errorf("%d messages, want the one from before the restart", n)
	}
}

// fault: 81
func TestReload(t *testing.T) {
	t.Parallel()
	one, two := testredis.Start(t), testredis.Start(t)
	set(t, one.Client(t), "lock:order:1", token, 0)
	set(t, two.Client(t), "lock:other:1", token, time.Hour)
	b := newBed(t, target(one.URL()))
	b.awaitMetric(`locksteward_locks{class="default",library="token",target="main"} 1`)

	b.write(strings.Replace(target(one.URL()), "]\n", ", {name: second, url: '"+two.URL()+"', schedule: '@every 1s'}]\n", 1) + orders + "alert: {console_url: 'https://locks.example'}\n")
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.awaitMetric(`locksteward_locks{class="orders",library="token",target="main"} 1`)
	b.awaitMetric(`locksteward_locks{class="default",library="token",target="second"} 1`)
	b.awaitMetric(`locksteward_console_info{url="https://locks.example"} 1`)

	b.write("targets: [{name: main, url: 'http://x'}]")
	if err := b.agent.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "targets[0].url") {
		t.Errorf("reload of a broken file = %v", err)
	}
	b.awaitMetric(`locksteward_config_last_reload_successful 0`)
	b.awaitMetric(`locksteward_locks{class="orders",library="token",target="main"} 1`)

	b.write(target(one.URL()) + orders)
	if err := b.agent.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, within, func() bool { return !strings.Contains(b.metrics(), `target="second"`) }, "the removed target is still shown")
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("c", []byte("targets: [{name: a, url: 'redis://127.0.0.1:1'}]\nstore: {dsn: 'sqlite:"+blocked+"/x.db'}"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.New(context.Background(), zap.NewNop(), cfg, agent.Options{})
	if err == nil || !strings.Contains(err.Error(), blocked) {
		t.Errorf("New = %v, want an error that names the file", err)
	}
}
