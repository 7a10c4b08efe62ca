package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/rules"
)

// errNotRunning is a reload before Run or after its end.
var errNotRunning = errors.New("the agent is not running")

// Reload reads the configuration again and applies it: targets, classes, rules,
// receivers and users. What cannot change in a running agent (the listeners, the
// store) is an error that names it. After an error everything is as it was. While the
// agent starts it waits for that, since the file may be newer than what the agent read.
func (a *Agent) Reload(ctx context.Context) error { return a.reloadBy(ctx, ownName) }

// reloadBy is Reload by a person, or by [ownName].
func (a *Agent) reloadBy(ctx context.Context, by string) error {
	if a.begun.Load() {
		select {
		case <-a.started:
		case <-ctx.Done():
			return fmt.Errorf("reload: %w", context.Cause(ctx))
		}
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	// Whatever becomes of the configuration: files may have been rotated.
	a.trail.Reopen()
	a.changing.Lock()
	err := a.reload(ctx, by)
	a.changing.Unlock()
	a.exporter.SetReload(err == nil)
	a.showSources()
	if err != nil {
		a.log.Error("configuration is not reloaded: the old one stays", zap.Error(err))
		return err
	}
	a.log.Info("configuration reloaded")
	a.updateDuties(ctx)
	return nil
}

// reloader is the agent, for admins who have it reload.
type reloader struct{ *Agent }

func (r reloader) Reload(ctx context.Context, by string) error { return r.reloadBy(ctx, by) }

func (a *Agent) reload(ctx context.Context, by string) error {
	if a.load == nil {
		return fmt.Errorf("reload: %w: this agent has no configuration file", locksteward.ErrRefused)
	}
	loaded, err := a.load()
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	sources := a.sources.Rebased(loaded)
	if err := a.change(ctx, sources.Config()); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	a.sources = sources
	a.auditBy(ctx, by, "agent.reload", "")
	return nil
}

// change has the agent follow another configuration, or says why it cannot; then
// everything is as it was.
func (a *Agent) change(ctx context.Context, cfg config.Config) (err error) {
	now := a.targets.Now()
	running, old := a.running.Load(), now.Config
	if running == nil || running.Err() != nil {
		return errNotRunning
	}
	if err := errors.Join(fixed(old, cfg), targets.Renamed(old, cfg)); err != nil {
		return err
	}

	// Everything that can fail comes before the first change: an error below leaves
	// everything as it was.
	classes, err := class.NewSet(cfg.Classes)
	if err != nil {
		return err
	}
	tell, err := a.alerts.Prepare(cfg.Alert)
	if err != nil {
		return ofAlert(err)
	}
	beats, err := a.heartbeat.Prepare(cfg.Alert.Heartbeat)
	if err != nil {
		return ofAlert(err)
	}
	defer func() {
		if err != nil {
			beats.Discard()
		}
	}()
	fresh := map[string]*targets.Watched{}
	defer func() {
		if err != nil {
			for _, w := range fresh {
				err = errors.Join(err, w.Close())
			}
		}
	}()
	for _, t := range cfg.Targets {
		w, ok := now.Watched[t.Name]
		if ok && w.Same(t) || !ok && a.member != nil {
			continue // a new one is watched when it is this replica's turn
		}
		if fresh[t.Name], err = targets.Prepare(ctx, t, classes, a.targetDeps()); err != nil {
			delete(fresh, t.Name)
			return err
		}
	}
	executors, files, err := a.executors(cfg)
	if err != nil {
		return err
	}
	admit, err := a.console.PrepareUsers()
	if err != nil {
		return fmt.Errorf("console.%w", err)
	}
	if _, err := rules.New(cfg.Rules, classes, nil); err != nil {
		return err
	}
	if err := cfg.Release.Validate(); err != nil {
		return fmt.Errorf("release.%w", err)
	}
	// The last thing that can fail: it writes to the store.
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		// What was reconciled before an error stays valid: none of these targets was watched.
		if err := fresh[name].Reconcile(ctx); err != nil {
			return err
		}
	}

	// Neither of the two can fail: what they check was checked above.
	if err := errors.Join(a.engine.Reload(cfg.Rules, classes), a.releases.Reload(cfg.Release, classes, executors)); err != nil {
		return err
	}
	a.engine.SetRedlocks(cfg.Redlock)
	admit()
	a.apply(running, cfg, classes, files, fresh, tell)
	beats.Commit()
	return nil
}

// ofAlert has each problem of receivers and of the heartbeat begin with its path in
// the configuration.
func ofAlert(err error) error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("alert.%w", err)
	}
	var errs []error
	for _, one := range many.Unwrap() {
		errs = append(errs, ofAlert(one))
	}
	return errors.Join(errs...)
}

// apply swaps in what reload built; nothing here can fail.
func (a *Agent) apply(running context.Context, cfg config.Config, classes *class.Set, files map[string]connect.Config, fresh map[string]*targets.Watched, tell func()) {
	var gone []*targets.Watched
	for name, w := range a.targets.Now().Watched {
		kept := slices.ContainsFunc(cfg.Targets, func(t config.Target) bool { return t.Name == name })
		if _, replaced := fresh[name]; replaced || !kept {
			gone = append(gone, w)
		}
	}
	for _, w := range gone {
		if p, next := w.Paused(), fresh[w.Target().Name]; p != nil && next != nil {
			next.Pause(*p)
		}
		w.Stop()
		if _, replaced := fresh[w.Target().Name]; !replaced {
			w.Forget(running)
			a.exporter.RemoveTarget(w.Target().Name)
		}
		a.memory.schedule()
	}
	a.targets.Alter(func(next *targets.Snapshot) {
		for _, w := range gone {
			delete(next.Watched, w.Target().Name)
		}
		maps.Copy(next.Watched, fresh)
		next.Config, next.Classes = cfg, classes
	})
	a.releaseFiles.Store(&files)
	watched := a.targets.Now().Watched
	for _, w := range watched {
		w.SetClasses(classes)
	}
	a.exporter.SetClasses(classes)
	for _, t := range cfg.Targets {
		if _, mine := watched[t.Name]; mine {
			a.exporter.SetReleaseEnabled(t.Name, t.ReleaseCredentials != nil)
		}
	}
	a.showLeader()
	tell()
	a.exportReceivers(cfg.Alert)
	for _, w := range fresh {
		w.Start(running)
	}
}

// fixed names what a running agent cannot change.
func fixed(old, cfg config.Config) error {
	var errs []error
	for _, f := range []struct {
		path     string
		was, now string
	}{
		{"store.dsn", old.Store.DSN, cfg.Store.DSN},
		{"store.audit_key_file", old.Store.AuditKeyFile, cfg.Store.AuditKeyFile},
		{"store.password_file", old.Store.PasswordFile, cfg.Store.PasswordFile},
		{"metrics.listen", old.Metrics.Listen, cfg.Metrics.Listen},
		{"metrics.web_config_file", old.Metrics.WebConfigFile, cfg.Metrics.WebConfigFile},
		{"metrics.top_locks", fmt.Sprint(old.Metrics.TopLocks), fmt.Sprint(cfg.Metrics.TopLocks)},
		{"metrics.key_names", old.Metrics.KeyNames, cfg.Metrics.KeyNames},
		{"console.listen", old.Console.Listen, cfg.Console.Listen},
		{"console.users_file", old.Console.UsersFile, cfg.Console.UsersFile},
		{"console.tls_cert_file", old.Console.TLSCertFile, cfg.Console.TLSCertFile},
		{"console.tls_key_file", old.Console.TLSKeyFile, cfg.Console.TLSKeyFile},
		{"console.tls_client_ca_file", old.Console.TLSClientCAFile, cfg.Console.TLSClientCAFile},
		{"console", old.Console.SignIn.Fixed(), cfg.Console.SignIn.Fixed()},
		{"cluster", fmt.Sprint(old.Cluster), fmt.Sprint(cfg.Cluster)},
		{"log.level", old.Log.Level, cfg.Log.Level},
		{"log.format", old.Log.Format, cfg.Log.Format},
	} {
		if f.was != f.now {
			// The values stay out of it: a DSN may hold a password.
			errs = append(errs, fmt.Errorf("%s: %w: it changed, which needs a restart of the agent", f.path, locksteward.ErrConflict))
		}
	}
	if !reflect.DeepEqual(old.Audit, cfg.Audit) {
		errs = append(errs, fmt.Errorf("audit: %w: it changed, which needs a restart of the agent", locksteward.ErrConflict))
	}
	return errors.Join(errs...)
}
