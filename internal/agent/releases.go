package agent

import (
	"context"
	"fmt"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/reload"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/store"
)

// newReleases builds the release service; targets without release credentials
// get no releaser, so that the agent cannot delete there.
func (a *Agent) newReleases(cfg config.Config) error {
	executors, files, err := a.executors(cfg)
	if err != nil {
		return err
	}
	a.releaseFiles.Store(&files)
	a.releases, err = release.New(a.log, cfg.Release, release.Deps{
		Store: a.store, Locks: a.targets, Classes: a.targets.Now().Classes, Releasers: executors, OnFinal: a.released,
		Settings: a.store, Receivers: a.receivers, Reminded: a.reminded, Mine: a.mine,
	})
	return err
}

// prepareReleases opens the release credentials of another configuration.
func (a *Agent) prepareReleases(cfg config.Config, classes *class.Set) (reload.Prepared, error) {
	executors, files, err := a.executors(cfg)
	if err != nil {
		return nil, err
	}
	service, err := a.releases.Prepare(cfg.Release, classes, executors)
	if err != nil {
		return nil, fmt.Errorf("release.%w", err)
	}
	return reload.All{service, reload.Funcs{OnCommit: func() { a.releaseFiles.Store(&files) }}}, nil
}

// reminded says whether the audit trail has a reminder of a request.
func (a *Agent) reminded(ctx context.Context, id string) (bool, error) {
	list, err := a.store.Entries(ctx, store.EntryQuery{Subject: id, Action: release.ActionRemind, Limit: 1})
	return len(list) > 0, err
}

// receivers is how many hear of what is never silent.
func (a *Agent) receivers() int {
	return len(a.targets.Now().Config.Alert.Receivers)
}

// executors opens the release credentials of a configuration; files are those of each
// target that has some.
func (a *Agent) executors(cfg config.Config) (out map[string]source.Releaser, files map[string]connect.Config, err error) {
	out, files = make(map[string]source.Releaser, len(cfg.Targets)), map[string]connect.Config{}
	for _, t := range cfg.Targets {
		cc, enabled, err := t.ConnectRelease()
		if err != nil {
			return nil, nil, err
		}
		if !enabled {
			out[t.Name] = nil
			continue
		}
		e, err := lockstore.NewReleaser(cc, lockstore.ReleaserOptions{Digest: a.digest, MetaPrefixes: t.RedisScan.MetaPrefixes, Tables: t.Tables})
		if err != nil {
			return nil, nil, fmt.Errorf("target %q: release: %w", t.Name, err)
		}
		out[t.Name], files[t.Name] = a.executions.Trace(e), cc
	}
	return out, files, nil
}

// released is called with each request that became final.
func (a *Agent) released(r locksteward.Request) {
	a.console.Touch()
	a.exporter.CountRelease(r.Evidence.Target, r.Evidence.Class, string(r.State))
	w, err := a.targets.Get(r.Evidence.Target)
	if err != nil {
		a.countRequests(context.Background())
		return
	}
	// The service must not wait for a read of the target.
	w.Released(r, func() context.Context {
		<-a.started // settled by Recover, before everything runs
		ctx := a.running.Load()
		a.countRequests(context.WithoutCancel(ctx))
		return ctx
	})
}
