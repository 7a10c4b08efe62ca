package agent

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/internal/credfile"
	"github.com/locksteward/locksteward/internal/heartbeat"
	"github.com/locksteward/locksteward/internal/liveness"
	"github.com/locksteward/locksteward/internal/lockhistory"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/notifications"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/silences"
	"github.com/locksteward/locksteward/internal/storehealth"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/internal/targetsources"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source/redis/connect"
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

	// changes holds one token: one change of the configuration at a time.
	changes chan struct{}
	sources *targetsources.Follower

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
	a := &Agent{log: log, load: opts.Load, started: make(chan struct{}), changes: make(chan struct{}, 1)}
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
	if a.engine, err = rules.New(cfg.Rules, classes, lockstore.Facts); err != nil {
		return nil, err
	}
	a.engine.SetRedlocks(cfg.Redlock)
	a.targets = targets.NewSet(a.engine, cfg, classes)
	if err = a.openStore(ctx, cfg, opts.Build.Version); err != nil {
		return nil, err
	}
	if a.exporter, err = exporter.New(cfg.Metrics, classes, opts.Build); err != nil {
		return nil, err
	}
	a.exporter.SetReload(true)
	a.exporter.SetConsoleURL(cfg.Alert.ConsoleURL)
	a.openStoreHealth()
	if cfg, err = a.openSources(ctx, cfg, cmp.Or(opts.LookEvery, config.LookEvery)); err != nil {
		return nil, err
	}
	a.history = lockhistory.NewWriter(a.log.Named("history"), a.store)
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
