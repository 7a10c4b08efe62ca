package agent

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/replicas"
	"github.com/locksteward/locksteward/store"
)

const (
	// fleetEvery is how often the other replicas are asked how their targets are, and
	// how old at most what the store says of their findings may be.
	fleetEvery = time.Second
	// fleetWithin is how long an answer may take: pages wait for it.
	fleetWithin = 2 * time.Second
)

// fleet is what the other replicas know, as this one shows it.
type fleet struct {
	agent *Agent
	soon  chan struct{} // look now, of size 1
	waken chan struct{} // the sender has something to do, of size 1

	mu      sync.Mutex
	targets map[string]api.Target // that others have, by name
	stale   map[string]bool       // complete sweeps of them are missing
	known   map[string]api.Target // as a replica told of them last, of all targets
	down    map[string]bool       // whether the last sweep found it down, likewise

	// reading lets one look at findings run at a time.
	reading  sync.Mutex
	findings []locksteward.Finding // of targets that others have
	read     time.Time
}

func newFleet(a *Agent) *fleet {
	a.answerAll()
	return &fleet{agent: a, soon: make(chan struct{}, 1), waken: make(chan struct{}, 1), targets: map[string]api.Target{}, known: map[string]api.Target{}, down: map[string]bool{}}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look has the others be asked soon.
func (f *fleet) look() { nudge(f.soon) }

// wake tells the replica that sends that there is something to be sent.
func (f *fleet) wake() { nudge(f.waken) }

// run asks and tells until ctx ends.
func (f *fleet) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { f.tellSender(ctx) })
	defer group.Wait()
	tick := time.NewTicker(fleetEvery)
	defer tick.Stop()
	for {
		f.ask(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.soon:
		}
	}
}

func (f *fleet) tellSender(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.waken:
		}
		to, ok := f.agent.houseHolder()
		if !ok {
			continue // whoever takes it looks
		}
		bound, cancel := context.WithTimeout(ctx, fleetWithin)
		_, err := replicas.Call[nothing, nothing](bound, f.agent.keeper.Peers(), to, callWake, nothing{})
		cancel()
		if err != nil && ctx.Err() == nil {
			// It looks by itself in a while.
			f.agent.log.Debug("the replica that sends is not told that there is something to be sent", zap.Error(err))
		}
	}
}

// ask asks the others how their targets are.
func (f *fleet) ask(ctx context.Context) {
	type told struct {
		targetsTold
		names []string
		from  store.Replica
		err   error
	}
	who := f.others("")
	answers := make([]told, len(who))
	var group sync.WaitGroup
	for i, one := range who {
		group.Go(func() {
			bound, cancel := context.WithTimeout(ctx, fleetWithin)
			defer cancel()
			got, err := replicas.Call[nothing, asJSON[targetsTold]](bound, f.agent.keeper.Peers(), one.replica, callTargets, nothing{})
			answers[i] = told{got.V, one.targets, one.replica, err}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	now, stale := map[string]api.Target{}, map[string]bool{}
	for _, a := range answers {
		for _, name := range a.names {
			n := slices.IndexFunc(a.Targets, func(t api.Target) bool { return t.Name == name })
			switch {
			case n >= 0:
				now[name] = a.Targets[n]
				stale[name] = slices.Contains(a.Stale, name)
			case a.err != nil:
				now[name] = f.unheard(name, a.from, a.err)
			}
		}
	}
	gone := f.unconfigured()
	f.mu.Lock()
	before := f.targets
	f.targets, f.stale = now, stale
	for name, t := range now {
		f.knowLocked(name, t)
	}
	back := false
	for _, a := range answers {
		for name, down := range a.Down {
			back = back || f.down[name] && !down
			f.down[name] = down
		}
	}
	for _, name := range gone {
		delete(f.known, name)
		delete(f.down, name)
	}
	f.mu.Unlock()
	f.agent.countRequests(ctx)
	if !reflect.DeepEqual(before, now) {
		f.agent.console.Touch()
	}
	if back && f.agent.house.opened() {
		f.agent.alerts.wakeHeld(ctx) // what was held back for it
	}
}

// unconfigured are targets that were known and are in the configuration no longer.
func (f *fleet) unconfigured() []string {
	f.mu.Lock()
	names := slices.Collect(maps.Keys(f.known))
	f.mu.Unlock()
	return slices.DeleteFunc(names, f.agent.configured)
}

// configured is a target as the configuration has it.
func (f *fleet) configured(name string) config.Target {
	for _, t := range f.agent.current().cfg.Targets {
		if t.Name == name {
			return t
		}
	}
	return config.Target{Name: name}
}

// other is a replica with those of its targets that are asked for.
type other struct {
	replica store.Replica
	targets []string
}

// others are the replicas that work on a target, or on any if it is "", but this one.
func (f *fleet) others(target string) []other {
	a := f.agent
	cfg := a.current().cfg.Targets
	var out []other
	for _, t := range cfg {
		if target != "" && t.Name != target {
			continue
		}
		r, mine, ok := a.keeper.Holder(t.Name)
		if !ok || mine {
			continue
		}
		n := slices.IndexFunc(out, func(o other) bool { return o.replica.ID == r.ID })
		if n < 0 {
			n = len(out)
			out = append(out, other{replica: r})
		}
		out[n].targets = append(out[n].targets, t.Name)
	}
	return out
}

// pulse adds how the targets of the others are. One of which nothing is known keeps
// heartbeats from being sent: if that lasts, somebody must look.
func (f *fleet) pulse(cfg []config.Target, own map[string]*watched, p *pulse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range cfg {
		if own[c.Name] != nil {
			continue
		}
		t, ok := f.targets[c.Name]
		if !ok || t.LastSweep == nil {
			p.whole = false
			continue
		}
		p.stale[c.Name] = f.stale[c.Name]
		if t.Up {
			p.up++
		}
		if at := t.LastSweep.At; p.oldest.IsZero() || at.Before(p.oldest) {
			p.oldest = at
		}
	}
}

// left takes in how this replica left a target: until another one has read it, that is
// what is known.
func (f *fleet) left(name string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[name] = down
}

// isDown says whether the last sweep of a target that a replica told of found it down.
func (f *fleet) isDown(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down[name]
}

// foreign are the findings on targets that other replicas have, as the store has them.
func (f *fleet) foreign() []locksteward.Finding {
	f.reading.Lock()
	defer f.reading.Unlock()
	if time.Since(f.read) < fleetEvery {
		return f.findings
	}
	ctx, cancel := context.WithTimeout(context.Background(), fleetWithin)
	defer cancel()
	a := f.agent
	cfg := a.current().cfg.Targets
	var out []locksteward.Finding
	for _, t := range cfg {
		if _, err := a.watched(t.Name); err == nil {
			continue
		}
		list, err := a.store.LoadFindings(ctx, t.Name)
		if err != nil {
			a.log.Warn("findings on targets of other replicas are not known", zap.Error(err))
			return f.findings // the page says which targets are not seen
		}
		out = append(out, list...)
	}
	f.findings, f.read = out, time.Now()
	return out
}

// findings are those of all targets, in any order; the slice is the caller's.
func (a *Agent) findings() []locksteward.Finding {
	out := a.engine.Findings()
	if a.fleet != nil {
		out = append(out, a.fleet.foreign()...)
	}
	return out
}

// everything is the findings as the console knows them.
type everything struct{ agent *Agent }

func (e everything) Findings() []locksteward.Finding { return e.agent.findings() }
