package targets

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/store"
)

// openDeps are what targets work with in tests that judge nothing.
func openDeps(t *testing.T) (Deps, *class.Set) {
	t.Helper()
	st, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	classes, err := class.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := rules.New(nil, classes, nil)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := exporter.New(exporter.Config{}, classes, exporter.BuildInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return Deps{
		Log: zap.NewNop(), Engine: engine, Store: st, Exporter: metrics, Liveness: liveness.New(zaptest.NewLogger(t)), Hosts: &pace.Hosts{},
		Touch: func() {}, Classes: func() *class.Set { return classes },
	}, classes
}

// A turn that never ends, for which no call to the store is the reason, makes the
// agent unhealthy; it is healthy again when it has ended.
func TestDeadlockIsUnhealthy(t *testing.T) {
	t.Parallel()
	deps, classes := openDeps(t)
	deps.Liveness.SetChecks(5)
	w, err := Prepare(t.Context(), config.Target{Name: "main", URL: "redis://127.0.0.1:1"}, classes, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.background(func() { w.showWatch(ctx) })
	w.background(func() { _ = deps.Liveness.Run(ctx) }) // it ends with ctx
	t.Cleanup(func() {
		cancel()
		w.rechecks.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	endTurn := w.turn.take()
	testredis.Eventually(t, time.Minute, func() bool {
		err := deps.Liveness.Healthy()
		return err != nil && strings.Contains(err.Error(), "no progress for 5s: ") && strings.Contains(err.Error(), "verdicts on target main")
	}, "a mutex that is never free is no reason")
	endTurn()
	testredis.Eventually(t, 20*time.Second, func() bool { return deps.Liveness.Healthy() == nil }, "it does not recover")
}
