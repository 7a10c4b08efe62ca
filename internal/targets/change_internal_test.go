package targets

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// closed reports whether the connections of a target are closed.
func closed(t *testing.T, w *Watched) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := w.conn.(interface {
		Masters(ctx context.Context) ([]connect.Master, error)
	}).Masters(ctx)
	return errors.Is(err, redis.ErrClosed)
}

// targetNamed is a target at which nothing listens.
func targetNamed(name string) config.Target {
	return config.Target{Name: name, URL: "redis://127.0.0.1:1"}
}

func openSet(t *testing.T, shared bool, list ...config.Target) (*Set, *class.Set) {
	t.Helper()
	deps, classes := openDeps(t)
	s := NewSet(deps.Engine, config.Config{Targets: list}, classes)
	s.Open(deps, shared)
	t.Cleanup(s.Stop)
	return s, classes
}

// What a discarded change prepared is closed, and everything is as it was, also if one of
// several targets cannot be made.
func TestDiscardedChangeLeavesNothing(t *testing.T) {
	t.Parallel()
	s, classes := openSet(t, false, targetNamed("a"))
	if err := s.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	was := s.Now()
	other := targetNamed("a")
	other.Scan = scanner.Config{Schedule: "@every 2s"}
	c, err := s.Prepare(t.Context(), t.Context(), config.Config{Targets: []config.Target{other, targetNamed("b")}}, classes)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.fresh) != 2 {
		t.Fatalf("prepared %v", c.fresh)
	}
	c.Discard()
	for name, f := range c.fresh {
		if !closed(t, f.target) {
			t.Errorf("target %q is not closed", name)
		}
	}
	bad := targetNamed("b")
	bad.URL = "nonsense"
	if _, err := s.Prepare(t.Context(), t.Context(), config.Config{Targets: []config.Target{other, bad}}, classes); err == nil {
		t.Error("a target that cannot be made is prepared")
	}
	if s.Now() != was || s.changing != nil || len(s.ending) != 0 || closed(t, was.Watched["a"]) {
		t.Errorf("something changed: %+v, was %+v", s.Now(), was)
	}
}

// A target that another replica takes while a change is prepared is not watched here after
// the change, and one that is gained meanwhile follows the new configuration.
func TestChangeWhileTargetsMove(t *testing.T) {
	t.Parallel()
	s, _ := openSet(t, true, targetNamed("a"), targetNamed("b"))
	a, err := s.Gain(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Config{Targets: []config.Target{targetNamed("a"), targetNamed("b")}}
	for i := range cfg.Targets {
		cfg.Targets[i].Scan = scanner.Config{Schedule: "@every 2s"}
	}
	next, err := class.NewSet([]class.Class{{Name: "orders", Match: []string{"lock:*"}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Prepare(t.Context(), t.Context(), cfg, next)
	if err != nil {
		t.Fatal(err)
	}
	gained := make(chan *Watched, 1)
	go func() {
		b, err := s.Gain(t.Context(), "b")
		if err != nil {
			t.Error(err)
		}
		gained <- b
	}()
	if left := s.Leave("a"); left != a {
		t.Fatalf("left %v", left)
	}
	c.Commit()
	select {
	case <-gained:
		t.Error("gained while the configuration changes")
	default:
	}
	c.Start()
	a.Stop()
	s.Remove(a)
	b := <-gained
	if b == nil || !b.Same(cfg.Targets[1]) {
		t.Error("what was gained follows the old configuration")
	}
	if now := s.Now(); len(now.Watched) != 1 || now.Watched["b"] != b || now.Classes != next || len(s.ending) != 0 {
		t.Errorf("watched: %v", now.Watched)
	}
	if left := s.Leave("a"); left != nil {
		t.Error("a target that is not here can be left")
	}
}
