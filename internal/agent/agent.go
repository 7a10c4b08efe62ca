package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/backend"
	"github.com/locksteward/locksteward/internal/clockcheck"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/credentials"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/heartbeat"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/lockhistory"
	"github.com/locksteward/locksteward/internal/notifications"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/silences"
	"github.com/locksteward/locksteward/internal/storehealth"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/formats"
	"github.com/locksteward/locksteward/store"
)

// Options are what the program knows and the configuration does not.
type Options struct {
	Build exporter.BuildInfo
	// Load reads the configuration again, for a reload; nil refuses reloads.
	Load func() (config.Config, error)
	// Stdout is where an audit sink of that kind writes; nil: there is none.
	Stdout io.Writer
	// LookEvery is between two looks at the sources of targets; 0: [config.LookEvery].
	LookEvery time.Duration
}

// Agent is the running program. Make one with [New].
type Agent struct {
	log    *zap.Logger
	load   func() (config.Config, error)
	digest locksteward.DigestKey

	store  *store.Store
	opened *store.Store // the one that is closed
	// member, router, remote and remoteSender are nil if the store is a file.
	member       *cluster.Member
	router       *cluster.Router
	remote       *remote.Targets
	remoteSender *remote.Sender
	singleton    singletonDuties
	hosts        pace.Hosts  // of all targets: what shares a machine shares an allowance
	wasReady     atomic.Bool // see ready
	ending       atomic.Bool // Run ends
	endSaid      sync.Once
	trail        *audit.Trail
	history      *lockhistory.Writer
	exporter     *exporter.Exporter
	metrics      *exporter.Server
	console      *console.Server
	engine       *rules.Engine
	releases     *release.Service
	targets      *targets.Set
	backend      *backend.Backend
	executions   targets.Executions
	resolved     targets.Resolved
	silences     *silences.Set
	heartbeat    *heartbeat.Sender
	liveness     *liveness.Monitor
	webFiles     *credfile.Set // of the metrics' listener

	// changes has a token for whoever changes the configuration: one change at a time.
	changes   chan struct{}
	sources   *config.Discovery // of whoever changes the configuration, from Run on
	follows   followed
	lookEvery time.Duration

	alerts      *notifications.Sender
	storeHealth *storehealth.Monitor

	// releaseFiles are the opened files of release credentials, by target.
	releaseFiles atomic.Pointer[map[string]connect.Config]
	// running is the context of Run; nil before it.
	running atomic.Pointer[runContext]
	// begun says that Run was called; started is closed when a reload may come.
	begun   atomic.Bool
	started chan struct{}
}

// New opens the store, takes both ports and prepares everything else. It
// connects to no Redis. The caller runs the agent or closes it.
func New(ctx context.Context, log *zap.Logger, cfg config.Config, opts Options) (_ *Agent, err error) {
	a := &Agent{log: log, load: opts.Load, lookEvery: cmp.Or(opts.LookEvery, config.LookEvery), started: make(chan struct{}), changes: make(chan struct{}, 1)}
	a.liveness = liveness.New(log.Named("liveness"))
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	connect.RedirectGoRedisLog(log.Named("redis"))
	classes, err := class.NewSet(cfg.Classes)
	if err != nil {
		return nil, err
	}
	if a.engine, err = rules.New(cfg.Rules, classes, formats.Facts); err != nil {
		return nil, err
	}
	a.engine.SetRedlocks(cfg.Redlock)
	a.targets = targets.NewSet(a.engine, cfg, classes)
	if err = a.openStore(ctx, cfg, opts.Build.Version); err != nil {
		return nil, err
	}
	if err = a.openSources(ctx); err != nil {
		return nil, err
	}
	cfg = a.targets.Now().Config
	a.history = lockhistory.NewWriter(a.log.Named("history"), a.store)
	if a.exporter, err = exporter.New(cfg.Metrics, classes, opts.Build); err != nil {
		return nil, err
	}
	a.exporter.SetReload(true)
	a.openStoreHealth()
	if err = a.newTrail(ctx, cfg, opts.Stdout); err != nil {
		return nil, err
	}
	if a.digest, err = a.store.DigestKey(ctx); err != nil {
		return nil, err
	}
	a.alerts, err = notifications.New(cfg.Alert, notifications.Deps{
		Log: a.log, Store: a.store, Metrics: a.exporter, Targets: a.targets, Salt: []byte(a.digest.Value([]byte("key_names"))),
		Silences:      func() []alert.Silence { return a.silences.Current() },
		DownElsewhere: func(target string) bool { return a.remote != nil && a.remote.Down(target) },
		OnlyReplica:   func() bool { return a.member == nil || a.member.Isolated() },
	}, a.wake)
	if err != nil {
		return nil, ofAlert(err)
	}
	a.silences = silences.New(silences.Options{
		Log: a.log, Store: a.store, Findings: func() []locksteward.Finding { return a.backend.Findings() }, Changed: a.alerts.WakeHeld, Waiting: a.alerts.RetryWakeHeld,
	})
	a.heartbeat = heartbeat.New(a.log.Named("heartbeat"), a.sweepStatus, a.exporter, a.liveness)
	beats, err := a.heartbeat.Prepare(cfg.Alert.Heartbeat)
	if err != nil {
		return nil, ofAlert(err)
	}
	beats.Commit()
	if a.member != nil {
		if err = checkTargets(cfg); err != nil {
			return nil, err
		}
	}
	if err = a.newReleases(cfg); err != nil {
		return nil, err
	}
	a.openBackend()
	a.targets.Open(a.targetDeps(), a.member != nil)
	if a.member == nil { // else each is watched when it is this replica's turn
		if err = a.targets.Fill(ctx); err != nil {
			return nil, err
		}
		a.showReleaseEnabled()
	}
	a.showLeader()
	if a.metrics, err = exporter.NewServer(log, cfg.Metrics, a.exporter, a.liveness.Healthy, a.ready); err != nil {
		return nil, err
	}
	if a.console, err = console.NewServer(a.log, cfg.Console, a.backend.Console(reloader{a}, a.silences)); err != nil {
		return nil, err
	}
	a.openWebFiles(cfg)
	return a, nil
}

// MetricsAddr is where metrics are served.
func (a *Agent) MetricsAddr() net.Addr { return a.metrics.Addr() }

// ConsoleURL is where the console and API are served.
func (a *Agent) ConsoleURL() string { return a.console.URL() }

// Close gives back what New took, if Run was never called.
func (a *Agent) Close() error {
	var errs []error
	if a.console != nil {
		errs = append(errs, a.console.Close())
	}
	if a.metrics != nil {
		errs = append(errs, a.metrics.Close())
	}
	if a.targets != nil {
		for _, w := range a.targets.Now().Watched {
			errs = append(errs, w.Close())
		}
	}
	if a.member != nil {
		a.member.Close()
	}
	errs = append(errs, a.closeStore())
	return errors.Join(errs...)
}

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

	following := a.followSources(ctx)

	<-ctx.Done()
	a.ending.Store(true)
	a.log.Info("agent stops", zap.String("reason", context.Cause(ctx).Error()))
	following()
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

// ownName stands in the audit trail for what nobody but the agent itself did.
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
