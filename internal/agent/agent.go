package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/audit"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/store"
)

// Options are what the program knows and the configuration does not.
type Options struct {
	Build exporter.BuildInfo
	// Load reads the configuration again, for a reload; nil refuses reloads.
	Load func() (config.Config, error)
	// Stdout is where an audit sink of that kind writes; nil: there is none.
	Stdout io.Writer
}

// Agent is the running program. Make one with [New].
type Agent struct {
	log    *zap.Logger
	load   func() (config.Config, error)
	digest locksteward.DigestKey

	store    *store.Store
	opened   *store.Store // the one that is closed
	sole     *sole        // nil for a file
	trail    *audit.Trail
	diary    *diary
	exporter *exporter.Exporter
	metrics  *exporter.Server
	console  *console.Server
	engine   *rules.Engine
	releases *release.Service
	ended    ended

	// reloading lets one reload run at a time.
	reloading sync.Mutex

	// mu guards what a reload replaces.
	mu      sync.RWMutex
	cfg     config.Config
	classes *class.Set
	targets map[string]*watched
	alerts  *alerts
	// running is the context of Run; nil before it.
	running context.Context
}

// New opens the store, takes both ports and prepares everything else. It
// connects to no Redis. The caller runs the agent or closes it.
func New(ctx context.Context, log *zap.Logger, cfg config.Config, opts Options) (_ *Agent, err error) {
	a := &Agent{log: log, load: opts.Load, cfg: cfg, targets: map[string]*watched{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	connect.RedirectGoRedisLog(log.Named("redis"))
	if a.classes, err = class.NewSet(cfg.Classes); err != nil {
		return nil, err
	}
	if a.engine, err = rules.New(cfg.Rules, a.classes); err != nil {
		return nil, err
	}
	a.engine.SetRedlocks(cfg.Redlock)
	if err = a.openStore(ctx, cfg.Store); err != nil {
		return nil, err
	}
	a.diary = newDiary(a.log, a.store)
	if err = a.newTrail(ctx, cfg, opts.Stdout); err != nil {
		return nil, err
	}
	if a.digest, err = a.store.DigestKey(ctx); err != nil {
		return nil, err
	}
	if a.exporter, err = exporter.New(cfg.Metrics, a.classes, opts.Build); err != nil {
		return nil, err
	}
	a.exporter.SetReload(true)
	if err = a.newAlerts(cfg.Alert); err != nil {
		return nil, err
	}
	for _, t := range cfg.Targets {
		if a.targets[t.Name], err = a.newWatched(ctx, t, a.classes); err != nil {
			return nil, err
		}
		a.exporter.SetReleaseEnabled(t.Name, t.ReleaseCredentials != nil)
	}
	if err = a.newReleases(cfg); err != nil {
		return nil, err
	}
	if a.metrics, err = exporter.NewServer(log, cfg.Metrics, a.exporter, a.ready); err != nil {
		return nil, err
	}
	if a.console, err = a.newConsole(cfg.Console); err != nil {
		return nil, err
	}
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
	for _, w := range a.targets {
		if w != nil {
			errs = append(errs, w.conn.Close())
		}
	}
	errs = append(errs, a.closeStore(context.Background()))
	return errors.Join(errs...)
}

// Run watches, serves and tells until ctx ends, then stops in order: sweeps,
// servers, deliveries, store. It returns nil for an orderly stop.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.audit(ctx, "agent.start", "")

	a.countRequests(ctx)

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
	serve("housekeeping", a.keepHouse)
	if a.sole != nil {
		serve("store", a.sole.run)
	}

	a.trail.Start(ctx)
	a.diary.start(ctx)
	a.mu.Lock()
	a.running = ctx
	a.alerts.start(ctx)
	for _, w := range a.targets {
		w.start(ctx)
	}
	// Said under the lock: from its end on a reload may replace the configuration.
	a.log.Info("agent started", zap.Stringer("metrics", a.metrics.Addr()), zap.String("console", a.console.URL()),
		zap.Int("targets", len(a.cfg.Targets)), zap.Int("classes", len(a.cfg.Classes)))
	a.mu.Unlock()

	<-ctx.Done()
	a.log.Info("agent stops", zap.String("reason", context.Cause(ctx).Error()))
	// A reload under way ends first, so that what it started is stopped too.
	a.reloading.Lock()
	defer a.reloading.Unlock()
	for _, w := range a.targets {
		w.stop()
	}
	servers.Wait()
	a.alerts.stop()
	a.diary.stop(ctx)
	a.audit(context.WithoutCancel(ctx), "agent.stop", "")
	a.trail.Stop(ctx)
	err := a.closeStore(context.WithoutCancel(ctx))
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// ready says what /-/ready waits for.
func (a *Agent) ready() error {
	a.mu.RLock()
	names := slices.Sorted(maps.Keys(a.targets))
	a.mu.RUnlock()
	return a.exporter.Ready(names...)
}

// audit writes an entry about the agent itself. It is not a condition of the
// act, so an error is logged.
func (a *Agent) audit(ctx context.Context, action, reason string) {
	a.auditBy(ctx, "agent", action, reason)
}

// auditBy writes an entry of what a person did to the agent itself.
func (a *Agent) auditBy(ctx context.Context, actor, action, reason string) {
	err := a.store.AppendEntries(ctx, locksteward.Entry{At: time.Now(), Actor: actor, Action: action, Reason: reason})
	if err != nil {
		a.log.Error("audit entry is not written", zap.String("action", action), zap.Error(err))
	}
}

// findingsOf are the current findings on one target.
func (a *Agent) findingsOf(target string) []locksteward.Finding {
	all := a.engine.Findings()
	return slices.DeleteFunc(all, func(f locksteward.Finding) bool { return f.Target != target })
}

func (a *Agent) countRequests(ctx context.Context) {
	counts, err := a.store.CountRequests(ctx)
	if err != nil {
		a.log.Error("release requests are not counted", zap.Error(err))
		return
	}
	a.exporter.SetRequests(counts)
}
