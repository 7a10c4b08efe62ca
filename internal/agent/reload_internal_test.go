package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/reload"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// counted counts what becomes of what a component prepared.
type counted struct {
	reload.Prepared
	commits, discards *int
}

func (c counted) Commit() {
	*c.commits++
	c.Prepared.Commit()
}

func (c counted) Discard() {
	*c.discards++
	c.Prepared.Discard()
}

// A reload of which one component refuses its part changes nothing, whichever it is, and
// what the others prepared is released. The next reload is none the worse for it.
func TestReloadThatOneComponentRefuses(t *testing.T) {
	t.Parallel()
	srv, other := testredis.Start(t), testredis.Start(t)
	dir := t.TempDir()
	load := func(name, targets, rest string) config.Config {
		text := fmt.Sprintf(`
targets: [%s]
metrics: {listen: '127.0.0.1:0'}
console: {listen: '127.0.0.1:0', users_file: '%s'}
store: {dsn: 'sqlite:%s'}
%s`, targets, filepath.Join(dir, "users.yaml"), filepath.Join(dir, "store.db"), rest)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	credentials := func(name string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	hook := func(path string) string {
		file := filepath.Join(dir, path)
		if err := os.WriteFile(file, []byte("https://example.org/"+path), 0o600); err != nil {
			t.Fatal(err)
		}
		return "url_file: '" + file + "'"
	}
	before := load("before.yaml", fmt.Sprintf("{name: main, url: '%s'}, {name: gone, url: '%s'}", srv.URL(), other.URL()), `
classes: [{class: orders, match: ['lock:order:*']}]
alert: {heartbeat: {every: 1h, webhook: {`+hook("beat-1")+`}}, receivers: [{name: first, kind: webhook, `+hook("first")+`}]}`)
	after := load("after.yaml", fmt.Sprintf("{name: main, url: '%s', schedule: '@every 2s', release_credentials: {username: u, password_file: '%s'}}, {name: more, url: '%s'}",
		srv.URL(), credentials("password"), other.URL()), `
classes: [{class: invoices, match: ['lock:*']}]
rules: [{rule: ttl/none, off: true}]
alert: {receivers: [{name: second, kind: webhook, `+hook("second")+`}]}`)

	a, err := New(t.Context(), zaptest.NewLogger(t), before, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-a.started

	type seen struct {
		Snapshot  *targets.Snapshot
		Watched   map[string]*targets.Watched
		Files     *map[string]connect.Config
		Verdicts  []api.Verdict
		Receivers []string
		Beats     []string
	}
	look := func() seen {
		out := seen{Snapshot: a.targets.Now(), Watched: a.targets.Now().Watched, Files: a.releaseFiles.Load()}
		out.Verdicts = a.backend.Explain(locksteward.Lock{Observation: locksteward.Observation{
			Target: "main", Key: "lock:order:1", Type: "string", Kind: locksteward.KindLock, TTL: locksteward.NoExpiry, ExpireAt: locksteward.NoExpireAt,
			At: time.Unix(1_800_000_000, 0), TokenDigest: "d",
		}}, "en")
		for _, r := range a.alerts.Receivers() {
			out.Receivers = append(out.Receivers, r.Name)
		}
		for _, f := range a.heartbeat.Files() {
			out.Beats = append(out.Beats, f.Key)
		}
		return out
	}
	classes, err := class.NewSet(after.Classes)
	if err != nil {
		t.Fatal(err)
	}
	// Verdicts change with the first sweep.
	testredis.Eventually(t, 20*time.Second, func() bool {
		for _, w := range a.targets.Now().Watched {
			if swept, ok := w.LastSweep(); !ok || !swept.Complete {
				return false
			}
		}
		return true
	}, "the targets are not swept")
	was := look()
	refused := errors.New("refused")
	running := a.running.Load()
	for i := range a.reloaded(ctx, running, after, classes) {
		list := a.reloaded(ctx, running, after, classes)
		var prepare []func() (reload.Prepared, error)
		commits, discards := 0, 0
		for _, c := range list[:i] {
			prepare = append(prepare, func() (reload.Prepared, error) {
				p, err := c.prepare()
				return counted{p, &commits, &discards}, err
			})
		}
		prepare = append(prepare, func() (reload.Prepared, error) { return nil, refused })
		if _, err := reload.Prepare(prepare...); !errors.Is(err, refused) {
			t.Fatalf("%s: %v", list[i].name, err)
		}
		if commits != 0 || discards != i {
			t.Errorf("%s refuses: %d of %d were discarded, %d committed", list[i].name, discards, i, commits)
		}
		if is := look(); is.Snapshot != was.Snapshot || !reflect.DeepEqual(is.Receivers, was.Receivers) || !reflect.DeepEqual(is.Beats, was.Beats) ||
			is.Files != was.Files || !reflect.DeepEqual(is.Verdicts, was.Verdicts) {
			t.Errorf("%s refuses: something changed:\n%+v\n%+v", list[i].name, was, is)
		}
	}

	end := a.beginChange()
	err = a.change(ctx, after)
	end()
	if err != nil {
		t.Fatal(err)
	}
	is := look()
	if slices.Equal(is.Receivers, was.Receivers) || slices.Equal(is.Beats, was.Beats) || is.Files == was.Files || reflect.DeepEqual(is.Verdicts, was.Verdicts) {
		t.Errorf("something did not change:\n%+v\n%+v", was, is)
	}
	if is.Watched["main"] == was.Watched["main"] || is.Watched["more"] == nil || is.Watched["gone"] != nil {
		t.Errorf("targets: %v", is.Watched)
	}
}
