package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/reload"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/internal/targetsources"
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
	defer a.beginChange()()
	// Whatever becomes of the configuration: files may have been rotated.
	a.trail.Reopen()
	err := a.reload(ctx, by)
	a.exporter.SetReload(err == nil)
	a.sources.Show()
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
	a.sources.Follow(sources)
	a.auditBy(ctx, by, "agent.reload", "")
	return nil
}

// beginChange waits until nobody else changes the configuration. That takes as long as targets take to end.
func (a *Agent) beginChange() (end func()) {
	a.changes <- struct{}{}
	return a.endChange
}

func (a *Agent) endChange() { <-a.changes }

// change has the agent follow another configuration, or says why it cannot; then
// everything is as it was.
func (a *Agent) change(ctx context.Context, cfg config.Config) error {
	running, old := a.running.Load(), a.targets.Now().Config
	if running == nil || running.Err() != nil {
		return errNotRunning
	}
	if err := errors.Join(fixed(old, cfg), targets.Renamed(old, cfg)); err != nil {
		return err
	}
	classes, err := class.NewSet(cfg.Classes)
	if err != nil {
		return err
	}
	var prepare []func() (reload.Prepared, error)
	for _, c := range a.reloaded(ctx, running, cfg, classes) {
		prepare = append(prepare, c.prepare)
	}
	all, err := reload.Prepare(prepare...)
	if err != nil {
		return err
	}
	all.Commit()
	return nil
}

// openSources returns the configuration with the targets that stand outside of it.
func (a *Agent) openSources(ctx context.Context, cfg config.Config, every time.Duration) (_ config.Config, err error) {
	a.sources, err = targetsources.Open(ctx, cfg, targetsources.Deps{
		Log: a.log, Store: a.store, Metrics: a.exporter, Every: every,
		BeginChange: a.beginChange, Change: a.change, Changed: a.updateDuties, Audit: a.audit,
	})
	if err != nil {
		return cfg, err
	}
	all := a.sources.Config()
	a.targets.Alter(func(next *targets.Snapshot) { next.Config = all })
	if a.member != nil {
		a.member.SetDuties(duties(all))
	}
	return all, nil
}

// component is a part of the agent that a reload changes.
type component struct {
	name    string
	prepare func() (reload.Prepared, error)
}

// reloaded are the parts that a reload changes, in the order in which they follow the new configuration: findings of targets
// that end go to the old receivers, and those of new targets to the new ones.
func (a *Agent) reloaded(ctx, running context.Context, cfg config.Config, classes *class.Set) []component {
	var change *targets.Change
	return []component{
		{"rules", func() (reload.Prepared, error) { return a.engine.Prepare(cfg.Rules, classes) }},
		{"releases", func() (reload.Prepared, error) { return a.prepareReleases(cfg, classes) }},
		{"users", func() (reload.Prepared, error) {
			users, err := a.console.PrepareUsers()
			if err != nil {
				return nil, fmt.Errorf("console.%w", err)
			}
			return users, nil
		}},
		{"targets", func() (_ reload.Prepared, err error) {
			if change, err = a.targets.Prepare(ctx, running, cfg, classes); err != nil {
				return nil, err
			}
			return change, nil
		}},
		{"receivers", func() (reload.Prepared, error) {
			receivers, err := a.alerts.Prepare(cfg.Alert)
			if err != nil {
				return nil, ofAlert(err)
			}
			return receivers, nil
		}},
		{"heartbeat", func() (reload.Prepared, error) {
			beats, err := a.heartbeat.Prepare(cfg.Alert.Heartbeat)
			if err != nil {
				return nil, ofAlert(err)
			}
			return beats, nil
		}},
		{"metrics", func() (reload.Prepared, error) {
			return reload.Funcs{OnCommit: func() {
				a.engine.SetRedlocks(cfg.Redlock)
				a.exporter.SetClasses(classes)
				a.exporter.SetConsoleURL(cfg.Alert.ConsoleURL)
				a.showReleaseEnabled()
				a.showLeader()
				a.alerts.ExportReceivers(cfg.Alert)
				change.Start()
			}}, nil
		}},
	}
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
