// Package remote has what other replicas know: the targets that they work on, the findings of those, and their answers to
// calls about all that they have.
package remote

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/store"
)

const (
	// Timeout bounds a call to another replica: pages wait for it.
	Timeout = 2 * time.Second
	// pollInterval is the time between two polls of the other replicas, and the age at which their findings are read again.
	pollInterval = time.Second
)

const callTargets = "targets"

// Status is the state of the targets that one replica works on.
type Status struct {
	Targets []api.Target
	Overdue []string        // names of the targets whose complete sweeps are overdue
	Down    map[string]bool // whether the last sweep found a target down; without those of which no sweep has ended
}

// Options are what Targets depends on.
type Options struct {
	Log    *zap.Logger
	Member *cluster.Member
	// Configured returns the names of the targets of the configuration, in its order.
	Configured func() []string
	// RunsHere reports whether this replica works on a target, and Own returns the state of all those.
	RunsHere func(name string) bool
	Own      func() Status
	// Unknown returns a target of which only the configuration is known, with the reason.
	Unknown func(name, reason string) api.Target
	// LoadFindings returns the findings of a target in the store.
	LoadFindings func(ctx context.Context, name string) ([]locksteward.Finding, error)
	// Polled is called after each poll. Changed reports that a target of another replica changed, and recovered that one
	// was swept that had been down.
	Polled func(ctx context.Context, changed, recovered bool)
}

// Targets is the targets that other replicas work on. Its methods may be called concurrently.
type Targets struct {
	opts Options
	due  chan struct{} // of size 1: the next poll is due now

	now      atomic.Pointer[snapshot]
	altering sync.Mutex // serializes replacements of now

	findings     atomic.Pointer[findings]
	findingReads singleflight.Group
}

// snapshot is never changed.
type snapshot struct {
	targets map[string]api.Target // of other replicas, as of the last poll
	overdue map[string]bool       // of these, whether their complete sweeps are overdue
	last    map[string]api.Target // as a replica that had swept it reported it last, of all targets
	down    map[string]bool       // likewise, whether the last sweep found it down
}

type findings struct {
	list []locksteward.Finding
	read time.Time
}

// New returns a Targets, and serves the polls of other replicas. It must be called before [cluster.Member.Run].
func New(opts Options) *Targets {
	t := &Targets{opts: opts, due: make(chan struct{}, 1)}
	t.now.Store(&snapshot{targets: map[string]api.Target{}, last: map[string]api.Target{}, down: map[string]bool{}})
	cluster.Handle(opts.Member.Peers(), callTargets, func(context.Context, empty) (cluster.JSON[Status], error) {
		return cluster.JSON[Status]{V: opts.Own()}, nil
	})
	return t
}

// empty is sent where there is nothing to send: gob needs a field.
type empty struct{ Empty bool }

// alter replaces the snapshot by a copy that fn has changed. Fn must not wait.
func (t *Targets) alter(fn func(next *snapshot)) {
	t.altering.Lock()
	defer t.altering.Unlock()
	next := *t.now.Load()
	next.targets, next.last, next.down = maps.Clone(next.targets), maps.Clone(next.last), maps.Clone(next.down)
	fn(&next)
	t.now.Store(&next)
}

// PollSoon makes the next poll due now. It never blocks.
func (t *Targets) PollSoon() {
	select {
	case t.due <- struct{}{}:
	default:
	}
}

// Run polls the other replicas until ctx ends.
func (t *Targets) Run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		t.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.due:
		}
	}
}

func (t *Targets) poll(ctx context.Context) {
	type answer struct {
		Status
		owner
		err error
	}
	owners := t.owners("")
	answers := make([]answer, len(owners))
	var group sync.WaitGroup
	for i, o := range owners {
		group.Go(func() {
			bound, cancel := context.WithTimeout(ctx, Timeout)
			defer cancel()
			got, err := cluster.Call[empty, cluster.JSON[Status]](bound, t.opts.Member.Peers(), o.replica, callTargets, empty{})
			answers[i] = answer{got.V, o, err}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	targets, overdue := map[string]api.Target{}, map[string]bool{}
	for _, a := range answers {
		for _, name := range a.targets {
			i := slices.IndexFunc(a.Targets, func(t api.Target) bool { return t.Name == name })
			switch {
			case i >= 0:
				targets[name] = a.Targets[i]
				overdue[name] = slices.Contains(a.Overdue, name)
			case a.err != nil:
				targets[name] = t.unanswered(name, a.replica, a.err)
			}
		}
	}
	configured := t.opts.Configured()
	changed, recovered := false, false
	t.alter(func(next *snapshot) {
		changed = !reflect.DeepEqual(next.targets, targets)
		next.targets, next.overdue = targets, overdue
		for name, one := range targets {
			next.keep(name, one)
		}
		for _, a := range answers {
			for name, down := range a.Down {
				recovered = recovered || next.down[name] && !down
				next.down[name] = down
			}
		}
		unconfigured := func(name string) bool { return !slices.Contains(configured, name) }
		maps.DeleteFunc(next.last, func(name string, _ api.Target) bool { return unconfigured(name) })
		maps.DeleteFunc(next.down, func(name string, _ bool) bool { return unconfigured(name) })
	})
	t.opts.Polled(ctx, changed, recovered)
}

// owner is another replica with those of its targets that matter.
type owner struct {
	replica store.Replica
	targets []string
}

// owners returns the other replicas that work on a target, or on any if it is "".
func (t *Targets) owners(target string) []owner {
	var out []owner
	for _, name := range t.opts.Configured() {
		if target != "" && name != target {
			continue
		}
		r, self, ok := t.opts.Member.Owner(name)
		if !ok || self {
			continue
		}
		i := slices.IndexFunc(out, func(o owner) bool { return o.replica.ID == r.ID })
		if i < 0 {
			i = len(out)
			out = append(out, owner{replica: r})
		}
		out[i].targets = append(out[i].targets, name)
	}
	return out
}

// keep remembers the state of a target, if it has been swept.
func (s *snapshot) keep(name string, t api.Target) {
	if t.LastSweep != nil {
		s.last[name] = t
	}
}

// unanswered returns a target whose replica does not answer.
func (t *Targets) unanswered(name string, r store.Replica, err error) api.Target {
	out := t.opts.Unknown(name, err.Error())
	out.Replica = r.Name
	return out
}

// Polled returns the state of a target of another replica as of the last poll, and whether its complete sweep is overdue.
// Ok is false if its replica did not report it.
func (t *Targets) Polled(name string) (target api.Target, overdue, ok bool) {
	now := t.now.Load()
	target, ok = now.targets[name]
	return target, now.overdue[name], ok
}

// View returns a target of another replica for people. One that no replica reports is down, with the state that was
// reported last: otherwise it would look as if it had never been swept.
func (t *Targets) View(name string) api.Target {
	now := t.now.Load()
	target, ok := now.targets[name]
	if _, _, owned := t.opts.Member.Owner(name); !owned || !ok {
		target = t.opts.Unknown(name, "no replica works on it at this moment: one takes it over within seconds")
	}
	if last, known := now.last[name]; known && target.Watch == nil { // every replica reports its watch
		last.Up, last.Reason, last.Replica, last.Sweeping = false, target.Reason, target.Replica, nil
		return last
	}
	return target
}

// Keep remembers the state of a target that this replica does not work on any more, until another one reports it. Down is
// whether the last sweep found it down; nil if none has ended.
func (t *Targets) Keep(name string, target api.Target, down *bool) {
	t.alter(func(next *snapshot) {
		next.keep(name, target)
		if down != nil {
			next.down[name] = *down
		}
	})
}

// Down reports whether the last sweep of a target that a replica reported found it down.
func (t *Targets) Down(name string) bool { return t.now.Load().down[name] }

// Findings returns the findings of targets of other replicas as the store has them, a second old at most. If the store
// does not answer they are older. The caller must not change them.
func (t *Targets) Findings() []locksteward.Finding {
	if now := t.findings.Load(); now.fresh() {
		return now.list
	}
	list, _, _ := t.findingReads.Do("", func() (any, error) {
		now := t.findings.Load()
		if now.fresh() {
			return now.list, nil
		}
		list, err := t.readFindings()
		if err != nil {
			t.opts.Log.Warn("findings of targets of other replicas could not be read", zap.Error(err))
			if now == nil {
				return []locksteward.Finding(nil), nil
			}
			return now.list, nil // the page says which targets are missing
		}
		t.findings.Store(&findings{list: list, read: time.Now()})
		return list, nil
	})
	return list.([]locksteward.Finding)
}

func (f *findings) fresh() bool { return f != nil && time.Since(f.read) < pollInterval }

func (t *Targets) readFindings() ([]locksteward.Finding, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	var out []locksteward.Finding
	for _, name := range t.opts.Configured() {
		if t.opts.RunsHere(name) {
			continue
		}
		list, err := t.opts.LoadFindings(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// CallAll calls all other replicas that work on a target, or on any if it is "", at once, and returns their answers. An
// answer that does not come is missing: the views of its targets report that from then on.
func CallAll[A, R any](t *Targets, target, name string, in A) []R {
	owners := t.owners(target)
	answers := make([]*R, len(owners))
	var group sync.WaitGroup
	for i, o := range owners {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), Timeout)
			defer cancel()
			got, err := cluster.Call[A, R](ctx, t.opts.Member.Peers(), o.replica, name, in)
			if err != nil {
				t.opts.Log.Warn("call to another replica failed", zap.String("call", name), zap.Strings("targets", o.targets), zap.Error(err))
				t.missed(o, err)
				return
			}
			answers[i] = &got
		})
	}
	group.Wait()
	var out []R
	for _, a := range answers {
		if a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// missed records that a replica did not answer.
func (t *Targets) missed(o owner, err error) {
	if !cluster.NoAnswer(err) {
		return
	}
	t.alter(func(next *snapshot) {
		for _, name := range o.targets {
			next.targets[name] = t.unanswered(name, o.replica, err)
		}
	})
	t.PollSoon()
}
