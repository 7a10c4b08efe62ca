package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/clockcheck"
	"github.com/locksteward/locksteward/internal/credentials"
	"github.com/locksteward/locksteward/internal/targets"
)

// Run watches, serves and tells until ctx ends, then stops in order: sweeps,
// servers, deliveries, store. It returns nil for an orderly stop.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.begun.Store(true)
	a.audit(ctx, "agent.start", "")

	var servers sync.WaitGroup
	serve := func(name string, run func(context.Context) error) {
		servers.Go(func() {
			if err := run(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	serve("metrics", a.metrics.Run)
	serve("console", a.console.Run)
	// What the last run left open is settled first in there, and beside the
	// servers: a Redis that does not answer must not keep the health checks waiting.
	serve("release", a.releases.Run)
	serve("silences", a.silences.Run)
	serve("heartbeat", a.heartbeat.Run)
	serve("liveness", a.liveness.Run)
	serve("probe", a.probe)
	serve("credentials", func(ctx context.Context) error {
		return credentials.Run(ctx, a.log, a.credentialFiles, a.exporter.SetCredentials)
	})
	serve("clock", clockcheck.Monitor{Log: a.log, Store: a.store, Shared: a.member != nil}.Run)
	serve("store", a.storeHealth.Run)

	// The last events of targets come after the end of ctx.
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	var history sync.WaitGroup
	history.Go(func() { a.history.Run(writing) })
	if err := a.silences.Read(ctx); err != nil {
		a.log.Error("silences are not loaded yet; silenced alerts may be sent", zap.Error(err))
	}
	// Until running is set there is no reload.
	working := a.work(ctx, cancel)
	cfg := a.targets.Now().Config
	a.log.Info("agent started", zap.Stringer("metrics", a.metrics.Addr()), zap.String("console", a.console.URL()),
		zap.Int("targets", len(cfg.Targets)), zap.Int("classes", len(cfg.Classes)))
	a.running.Store(&runContext{ctx})
	close(a.started)

	var following sync.WaitGroup
	following.Go(func() { a.sources.Run(ctx) })

	<-ctx.Done()
	a.ending.Store(true)
	a.log.Info("agent stops", zap.String("reason", context.Cause(ctx).Error()))
	following.Wait()
	// A reload under way ends first, so that what it started is stopped too.
	defer a.beginChange()()
	working()
	servers.Wait()
	stopWriting()
	history.Wait()
	a.sayEnd(ctx)
	a.stopSingletonDuties(ctx)
	err := a.closeStore()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// runContext is the context of [Agent.Run].
type runContext struct{ context.Context }

// targetDeps are what targets work with.
func (a *Agent) targetDeps() targets.Deps {
	return targets.Deps{
		Log: a.log, Engine: a.engine, Store: a.store, Exporter: a.exporter, History: a.history, Liveness: a.liveness, Digest: a.digest, Hosts: &a.hosts,
		Alerts: a.alerts, Releases: a.releases, Resolved: &a.resolved, Executions: &a.executions,
		Classes: func() *class.Set { return a.targets.Now().Classes }, Touch: a.touch, CountRequests: a.countRequests,
	}
}

// showReleaseEnabled has the metrics show on which targets here the agent may delete.
func (a *Agent) showReleaseEnabled() {
	now := a.targets.Now()
	for _, t := range now.Config.Targets {
		if _, here := now.Watched[t.Name]; here {
			a.exporter.SetReleaseEnabled(t.Name, t.ReleaseCredentials != nil)
		}
	}
}

// touch says that pages show something else now.
func (a *Agent) touch() { a.console.Touch() }

// sayEnd writes an audit entry of the end of this agent, once: before the singleton duties stop, which ship the trail.
func (a *Agent) sayEnd(ctx context.Context) {
	if a.ending.Load() {
		a.endSaid.Do(func() { a.audit(context.WithoutCancel(ctx), "agent.stop", "") })
	}
}

// work does what is this replica's until stop, which ends it in order; with a store of
// its own that is everything.
func (a *Agent) work(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	if a.member == nil {
		a.startSingletonDuties(ctx)
		a.targets.Start(ctx)
		return a.targets.Stop
	}
	// The leases outlive ctx: what ends is written under them.
	keeping, end := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() {
		if err := a.member.Run(keeping); err != nil {
			cancel(fmt.Errorf("this replica ends: %w", err))
		}
	})
	group.Go(func() { a.remote.Run(ctx) })
	group.Go(func() { a.remoteSender.Run(ctx) })
	return func() {
		end()
		group.Wait()
	}
}

// ownName is the actor in the audit trail of what the agent itself did.
const ownName = "agent"

// audit writes an entry about the agent itself. It is not a condition of the
// act, so an error is logged.
func (a *Agent) audit(ctx context.Context, action, reason string) {
	a.auditBy(ctx, ownName, action, reason)
}

// auditBy writes an entry of what a person did to the agent itself.
func (a *Agent) auditBy(ctx context.Context, actor, action, reason string) {
	err := a.store.AppendEntries(ctx, locksteward.Entry{At: time.Now(), Actor: actor, Action: action, Reason: reason})
	if err != nil {
		a.log.Error("audit entry is not written", zap.String("action", action), zap.Error(err))
	}
}

// countRequests has the metrics show how many requests there are. They belong to no target, so the replica with the
// singleton duties shows them.
func (a *Agent) countRequests(ctx context.Context) {
	if a.member != nil && !a.singleton.isActive() {
		return
	}
	counts, err := a.store.CountRequests(ctx)
	if err != nil {
		a.log.Error("release requests are not counted", zap.Error(err))
		return
	}
	a.exporter.SetRequests(counts)
}
