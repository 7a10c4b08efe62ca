package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/store"
)

// newReleases builds the release service; targets without release credentials
// get no executor, so that the agent cannot delete there.
func (a *Agent) newReleases(cfg config.Config) error {
	executors, files, err := a.executors(cfg)
	if err != nil {
		return err
	}
	a.alter(func(next *state) { next.releaseFiles = files })
	a.releases, err = release.New(a.log, cfg.Release, release.Deps{
		Store: a.store, Locks: a, Classes: a.current().classes, Executors: executors, OnFinal: a.released,
		Settings: a.store, Receivers: a.receivers, Reminded: a.reminded, Mine: a.mine,
	})
	return err
}

// reminded says whether the audit trail has a reminder of a request.
func (a *Agent) reminded(ctx context.Context, id string) (bool, error) {
	list, err := a.store.Entries(ctx, store.EntryQuery{Subject: id, Action: release.ActionRemind, Limit: 1})
	return len(list) > 0, err
}

// receivers is how many hear of what is never silent.
func (a *Agent) receivers() int {
	return len(a.current().cfg.Alert.Receivers)
}

// executors opens the release credentials of a configuration; files are those of each
// target that has some.
func (a *Agent) executors(cfg config.Config) (out map[string]release.Executor, files map[string]connect.Config, err error) {
	out, files = make(map[string]release.Executor, len(cfg.Targets)), map[string]connect.Config{}
	for _, t := range cfg.Targets {
		cc, enabled, err := t.ConnectRelease()
		if err != nil {
			return nil, nil, err
		}
		if !enabled {
			out[t.Name] = nil
			continue
		}
		e, err := release.NewRedisExecutor(release.ExecutorConfig{
			Connect: cc, Digest: a.digest, MetaPrefixes: t.RedisScan.MetaPrefixes,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("target %q: release: %w", t.Name, err)
		}
		out[t.Name], files[t.Name] = tracedExecutor{e, &a.releasing}, cc
	}
	return out, files, nil
}

// released is told of each request that became final.
func (a *Agent) released(r locksteward.Request) {
	a.console.Touch()
	a.exporter.CountRelease(r.Evidence.Target, r.Evidence.Class, string(r.State))
	w, err := a.watched(r.Evidence.Target)
	if err != nil {
		a.countRequests(context.Background())
		return
	}
	// The service must not wait for a read of Redis.
	w.background(func() {
		<-a.started // settled by Recover, before everything runs
		ctx := a.current().running
		a.countRequests(context.WithoutCancel(ctx))
		w.released(ctx, r)
	})
}

// ReadLock reads one lock directly and tells which rules fire on it. It is the
// release service's LockReader.
func (a *Agent) ReadLock(ctx context.Context, target, key string) (locksteward.Lock, []string, error) {
	w, err := a.watched(target)
	if err != nil {
		return locksteward.Lock{}, nil, err
	}
	l, err := w.scanner.Table().Refresh(ctx, key)
	if err != nil {
		return locksteward.Lock{}, nil, w.told(err)
	}
	return l, a.firing(l), nil
}

// firing are the rules that fire on a lock and the expressions of its class's
// dead_when that hold for it, sorted, each once.
func (a *Agent) firing(l locksteward.Lock) []string {
	rules := append(a.engine.Firing(l), a.engine.DeadWhen(l)...)
	slices.Sort(rules)
	return slices.Compact(rules)
}

// ProofOf is how surely the holder of a lock is dead where holder/dead fires on
// it. It is the release service's Prover.
func (a *Agent) ProofOf(l locksteward.Lock) locksteward.Proof {
	for _, f := range a.engine.FindingsFor(l.Target, l.DB, l.Key) {
		if f.Status == locksteward.StatusFiring && f.Rule == "holder/dead" {
			return f.Proof
		}
	}
	return ""
}

// watched returns a target by its name.
func (a *Agent) watched(name string) (*watched, error) {
	w, ok := a.current().targets[name]
	if !ok {
		return nil, noTarget(name)
	}
	return w, nil
}

func noTarget(name string) error {
	return fmt.Errorf("%w: no target is named %q; 'locksteward config check' lists them", locksteward.ErrNotFound, name)
}

var (
	_ release.LockReader = (*Agent)(nil)
	_ release.Prover     = (*Agent)(nil)
)
