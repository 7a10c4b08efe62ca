package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/internal/replicas"
	"github.com/locksteward/locksteward/store"
)

// openStore opens the store. A file is this agent's alone; a database is shared with
// other replicas, and what belongs to a target is written under a lease on it.
func (a *Agent) openStore(ctx context.Context, cfg config.Config, version string) error {
	st, err := store.OpenConfig(ctx, cfg.Store)
	if err != nil {
		return err
	}
	a.store, a.opened, a.kept = st, st, cfg.Store
	if err := a.tellSetAside(ctx); err != nil {
		return err
	}
	if !cfg.Store.Shared() {
		return nil // the file is locked
	}
	if a.keeper, err = replicas.Open(a.log.Named("replicas"), st, cfg.Cluster, version); err != nil {
		return err
	}
	a.store = st.Under(a.keeper.Lease)
	a.keeper.SetDuties(duties(cfg))
	a.keeper.Use(replicas.Hooks{Take: a.take, Drop: a.drop, Changed: a.rollChanged, Reach: a.reach})
	return nil
}

// duties are what one replica does at a time: each target, the masters of one Redlock
// together since a majority is judged of all of them, and the house.
func duties(cfg config.Config) []replicas.Duty {
	with := map[string]string{}
	lead := func(name string) string {
		for with[name] != "" {
			name = with[name]
		}
		return name
	}
	for _, r := range cfg.Redlock {
		for _, name := range r.Targets[min(1, len(r.Targets)):] {
			if one, other := lead(r.Targets[0]), lead(name); one != other {
				with[other] = one
			}
		}
	}
	out := []replicas.Duty{{Name: store.House}}
	for _, t := range cfg.Targets {
		d := replicas.Duty{Name: t.Name}
		if first := lead(t.Name); first != t.Name {
			d.With = first
		}
		out = append(out, d)
	}
	return out
}

// checkTargets says what is wrong with targets that this replica may not watch for
// long: better now than then.
func checkTargets(cfg config.Config) error {
	for _, t := range cfg.Targets {
		cc, err := t.Connect()
		if err != nil {
			return err
		}
		conn, err := connect.Open(cc)
		if err != nil {
			return fmt.Errorf("target %q: %w", t.Name, err)
		}
		if err := conn.Close(); err != nil {
			return fmt.Errorf("target %q: %w", t.Name, err)
		}
	}
	return nil
}

// take begins a duty.
func (a *Agent) take(ctx context.Context, duty string) error {
	a.changing.RLock()
	defer a.changing.RUnlock()
	if duty == store.House {
		a.openHouse(ctx)
		return nil
	}
	now := a.current()
	i := slices.IndexFunc(now.cfg.Targets, func(t config.Target) bool { return t.Name == duty })
	if i < 0 {
		return fmt.Errorf("target %q: the configuration has it no longer", duty)
	}
	t := now.cfg.Targets[i]
	w, err := a.newWatched(ctx, t, now.classes)
	if err != nil {
		return err
	}
	a.alter(func(next *state) { next.targets[duty] = w })
	a.exporter.SetReleaseEnabled(duty, t.ReleaseCredentials != nil)
	a.log.Info("target is watched by this replica", zap.String("target", duty))
	a.releases.Gained(duty)
	w.start(ctx)
	return nil
}

// drop ends a duty. What a target's findings are is the next replica's to say.
func (a *Agent) drop(ctx context.Context, duty string, lost bool) {
	a.changing.RLock()
	defer a.changing.RUnlock()
	if duty == store.House {
		a.sayEnd(ctx)
		a.closeHouse(ctx)
		return
	}
	w := a.current().targets[duty]
	if w == nil {
		return // a reload took it out
	}
	w.lost.Store(lost)
	if a.keeper.Blind(duty) {
		w.hangUp()
	}
	w.stop()
	if !lost {
		a.diary.drain(ctx)
	}
	a.alter(func(next *state) { delete(next.targets, duty) })
	a.forgetTarget(w)
	a.log.Info("target is watched by this replica no longer", zap.String("target", duty), zap.Bool("lost", lost))
}

// share has the keeper follow a reload: what is new is anybody's, and what is gone is
// ended and given back.
func (a *Agent) share(ctx context.Context) {
	if a.keeper == nil {
		return
	}
	now := duties(a.current().cfg)
	var gone []string
	for _, name := range a.keeper.Me().Targets {
		if !slices.ContainsFunc(now, func(d replicas.Duty) bool { return d.Name == name }) {
			gone = append(gone, name)
		}
	}
	a.keeper.SetDuties(now)
	a.keeper.Yield(ctx, gone...)
	a.fleet.look()
}

// forgetTarget drops what is known here of a target that another replica watches.
func (a *Agent) forgetTarget(w *watched) {
	a.engine.RemoveTarget(w.target.Name, time.Now())
	a.exporter.RemoveTarget(w.target.Name)
	w.mu.Lock()
	unsaved := w.unsaved
	w.unsaved = nil
	w.mu.Unlock()
	a.bequests.add(bequest{w.target.Name, a.firesTold(unsaved)})
	a.alerts.Saved(unsaved, nil)
	a.fleet.know(w.target.Name, w.view())
	if down := w.down.Load(); down != nil {
		a.fleet.left(w.target.Name, *down)
	}
	a.showLeader()
	a.console.Touch()
	a.memory.schedule()
}

// rollChanged takes in who does what.
func (a *Agent) rollChanged() {
	a.showLeader()
	a.exporter.SetReplicas(len(a.keeper.Replicas()))
	if !a.wasReady.Load() {
		a.ready()
	}
	a.fleet.look()
}

// mine says whether a target is this replica's to work on now.
func (a *Agent) mine(target string) bool {
	return a.keeper == nil || a.keeper.Holds(target, time.Now())
}

// showLeader has the metrics say of which targets this replica is the one that works
// on them, and until when unless it is told again: with a store of its own of all.
func (a *Agent) showLeader() {
	for _, t := range a.current().cfg.Targets {
		leads, until := true, time.Time{}
		if a.keeper != nil {
			until, leads = a.keeper.Until(t.Name)
		}
		a.exporter.SetLeader(t.Name, leads, until)
	}
}

// closeStore lets others in and closes the store.
func (a *Agent) closeStore() error {
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}
