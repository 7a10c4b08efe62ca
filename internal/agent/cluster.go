package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/backend"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/internal/storehealth"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/store"
)

// openStore opens the store. A file is used by this agent only; a database is shared with
// other replicas, and writes about a target are made under its lease.
func (a *Agent) openStore(ctx context.Context, cfg config.Config, version string) error {
	st, err := store.OpenConfig(ctx, cfg.Store)
	if err != nil {
		return err
	}
	a.store, a.opened = st, st
	if !cfg.Store.Shared() {
		return nil // the file is locked
	}
	hooks := cluster.Hooks{Start: a.startDuty, Stop: a.stopDuty, Ping: a.pingTarget, Dial: a.dialTarget, Changed: a.membershipChanged}
	if a.member, err = cluster.Open(a.log.Named("cluster"), st, cfg.Cluster, version, hooks); err != nil {
		return err
	}
	a.store = st.Under(a.member.Lease)
	a.member.SetDuties(duties(cfg))
	return nil
}

// openStoreHealth begins to show the health of the store. A database that is put back to an older state while replicas run is
// claimed anew: what it says fires, and was notified, is gone by; what is known here was never there.
func (a *Agent) openStoreHealth() {
	var onOlder func(context.Context)
	if a.member != nil {
		onOlder = a.member.ReacquireAll
	}
	a.storeHealth = storehealth.New(a.log, a.store, a.exporter, onOlder)
	a.storeHealth.Update()
}

// duties returns what one replica works on at a time: each target, and the singleton duties. The masters of one Redlock go
// together, since a majority is judged of all of them.
func duties(cfg config.Config) []cluster.Duty {
	var groups [][]string
	for _, r := range cfg.Redlock {
		groups = append(groups, r.Targets)
	}
	return cluster.Duties(targetNames(cfg), groups)
}

func targetNames(cfg config.Config) []string {
	var out []string
	for _, t := range cfg.Targets {
		out = append(out, t.Name)
	}
	return out
}

// openBackend makes what the console and the API show, and joins this agent to the other replicas.
func (a *Agent) openBackend() {
	if a.member != nil {
		a.router = cluster.NewRouter(a.member, a.targets.Configured, a.targets.RunsHere)
		a.remote = remote.New(remote.Options{
			Log: a.log, Member: a.member, Configured: a.targets.Names, RunsHere: a.targets.RunsHere,
			Own: func() remote.Status {
				return remote.Status{Targets: a.backend.OwnTargets(), Overdue: a.sweepStatus(time.Now()).Overdue(), Down: a.targets.Down()}
			},
			Unknown:      func(name, reason string) api.Target { return backend.Unseen(a.targets.Config(name), reason) },
			LoadFindings: a.store.LoadFindings,
			Polled:       a.remotePolled,
		})
		a.remoteSender = remote.NewSender(a.log, a.member, func() {
			if a.singleton.isActive() {
				a.alerts.Wake()
			}
		})
	}
	a.backend = backend.New(backend.Deps{
		Log: a.log, Store: a.store, Targets: a.targets, Engine: a.engine, Releases: a.releases, Resolved: &a.resolved, Alerts: a.alerts, Trail: a.trail,
		Member: a.member, Router: a.router, Remote: a.remote, CountRequests: a.countRequests, Matched: a.exporter.ClassMatched,
	})
	if a.member != nil {
		a.backend.ServeCalls()
	}
}

// remotePolled updates what depends on the targets of other replicas.
func (a *Agent) remotePolled(ctx context.Context, changed, recovered bool) {
	a.countRequests(ctx)
	if changed {
		a.console.Touch()
	}
	if recovered && a.singleton.isActive() {
		a.alerts.WakeHeld(ctx) // notifications that were inhibited while it was down
	}
}

// checkTargets returns what is wrong with targets, which this replica might otherwise find out only when it acquires them.
func checkTargets(cfg config.Config) error {
	for _, t := range cfg.Targets {
		cc, err := t.Connect()
		if err != nil {
			return err
		}
		conn, err := lockstore.Open(cc)
		if err != nil {
			return fmt.Errorf("target %q: %w", t.Name, err)
		}
		if err := conn.Close(); err != nil {
			return fmt.Errorf("target %q: %w", t.Name, err)
		}
	}
	return nil
}

// startDuty starts the work on a duty.
func (a *Agent) startDuty(ctx context.Context, duty string) error {
	if duty == store.SingletonDuties {
		a.startSingletonDuties(ctx)
		return nil
	}
	w, err := a.targets.Gain(ctx, duty)
	if err != nil {
		return err
	}
	a.exporter.SetReleaseEnabled(duty, a.targets.Config(duty).ReleaseCredentials != nil)
	a.log.Info("target is watched by this replica", zap.String("target", duty))
	a.releases.Gained(duty)
	w.Start(ctx)
	return nil
}

// stopDuty ends the work on a duty. The findings of a target remain for the next replica.
func (a *Agent) stopDuty(ctx context.Context, duty string, lost bool) {
	if duty == store.SingletonDuties {
		a.sayEnd(ctx)
		a.stopSingletonDuties(ctx)
		return
	}
	w := a.targets.Leave(duty)
	if w == nil {
		return // a reload removed it
	}
	if lost {
		w.Lose()
	}
	if a.member.Unreachable(duty) {
		w.HangUp()
	}
	w.Stop()
	if !lost {
		a.history.Drain(ctx)
	}
	a.targets.Remove(w)
	a.forgetTarget(w)
	a.log.Info("target is no longer watched by this replica", zap.String("target", duty), zap.Bool("lost", lost))
}

// pingTarget asks the servers of a target of this replica over the open connections.
func (a *Agent) pingTarget(ctx context.Context, name string) error {
	w, err := a.targets.Get(name)
	if err != nil {
		return err
	}
	return w.Ping(ctx)
}

// dialTarget asks the servers of a target over connections that it makes and closes.
func (a *Agent) dialTarget(ctx context.Context, name string) error {
	cc, err := a.targets.Config(name).Connect()
	if err != nil {
		return err
	}
	return lockstore.Reach(ctx, cc)
}

// updateDuties applies a reload to the duties: those that are new are without an owner, and those that are gone end here.
func (a *Agent) updateDuties(ctx context.Context) {
	if a.member == nil {
		return
	}
	now := duties(a.targets.Now().Config)
	var gone []string
	for _, name := range a.member.Self().Targets {
		if !slices.ContainsFunc(now, func(d cluster.Duty) bool { return d.Name == name }) {
			gone = append(gone, name)
		}
	}
	a.member.SetDuties(now)
	a.member.Release(ctx, gone...)
	a.remote.PollSoon()
}

// forgetTarget removes what is known here of a target that another replica watches from now on.
func (a *Agent) forgetTarget(w *targets.Watched) {
	a.engine.RemoveTarget(w.Target().Name, time.Now())
	a.exporter.RemoveTarget(w.Target().Name)
	a.alerts.Saved(w.TakeUnsaved(), nil)
	a.remote.Keep(w.Target().Name, w.View(), w.Down())
	a.showLeader()
	a.console.Touch()
}

// membershipChanged shows which replica works on what.
func (a *Agent) membershipChanged() {
	a.showLeader()
	a.exporter.SetReplicas(len(a.member.Replicas()))
	if !a.wasReady.Load() {
		a.ready()
	}
	a.remote.PollSoon()
}

// mine reports whether this replica may write about a target now.
func (a *Agent) mine(target string) bool {
	return a.member == nil || a.member.Owns(target, time.Now())
}

// showLeader has the metrics show the targets that this replica works on, and until when unless the leases are renewed:
// all of them if the store is not shared.
func (a *Agent) showLeader() {
	for _, t := range a.targets.Now().Config.Targets {
		leads, until := true, time.Time{}
		if a.member != nil {
			until, leads = a.member.OwnedUntil(t.Name)
		}
		a.exporter.SetLeader(t.Name, leads, until)
	}
}

// wake has the replica that sends notifications check the queue.
func (a *Agent) wake() {
	if a.member == nil || a.singleton.isActive() {
		a.alerts.Wake()
		return
	}
	a.remoteSender.Wake()
}

// closeStore closes the store, so that another agent can open it.
func (a *Agent) closeStore() error {
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}
