package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/lockview"
	"github.com/locksteward/locksteward/internal/replicas"
	"github.com/locksteward/locksteward/store"
)

// shown is a target of another replica, as pages show it. One that nobody tells of is
// down, and keeps what was known of it: else it would look as if it was never read.
func (f *fleet) shown(t config.Target) api.Target {
	f.mu.Lock()
	defer f.mu.Unlock()
	there, ok := f.targets[t.Name]
	if _, _, worked := f.agent.keeper.Holder(t.Name); !worked || !ok {
		there = unseen(t, "no replica works on it at this moment: one takes it over within seconds")
	}
	if last, known := f.known[t.Name]; known && there.Watch == nil { // every replica tells of its watch
		last.Up, last.Reason, last.Replica, last.Sweeping = false, there.Reason, there.Replica, nil
		return last
	}
	return there
}

// know keeps how a target was when somebody told last.
func (f *fleet) know(name string, t api.Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.knowLocked(name, t)
}

func (f *fleet) knowLocked(name string, t api.Target) {
	if t.LastSweep != nil {
		f.known[name] = t
	}
}

// unheard is a target whose replica does not answer.
func (f *fleet) unheard(name string, from store.Replica, err error) api.Target {
	t := unseen(f.configured(name), err.Error())
	t.Replica = from.Name
	return t
}

// everyOther asks the replicas that work on a target, or on any, all at once. What one
// does not answer is missing: pages say of its targets from then on that they are not
// seen.
func everyOther[A, R any](f *fleet, target, name string, in A) []R {
	who := f.others(target)
	out := make([]R, len(who))
	failed := make([]bool, len(who))
	var group sync.WaitGroup
	for i, one := range who {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), fleetWithin)
			defer cancel()
			var err error
			if out[i], err = replicas.Call[A, R](ctx, f.agent.keeper.Peers(), one.replica, name, in); err != nil {
				failed[i] = true
				f.agent.log.Warn("another replica does not say what it knows", zap.String("call", name), zap.Strings("targets", one.targets), zap.Error(err))
				f.miss(one, err)
			}
		})
	}
	group.Wait()
	var heard []R
	for i, r := range out {
		if !failed[i] {
			heard = append(heard, r)
		}
	}
	return heard
}

// miss takes in that a replica did not answer.
func (f *fleet) miss(who other, err error) {
	if !replicas.Silent(err) {
		return
	}
	missed := map[string]api.Target{}
	for _, name := range who.targets {
		missed[name] = f.unheard(name, who.replica, err)
	}
	f.mu.Lock()
	now := maps.Clone(f.targets) // others read it as it was
	maps.Copy(now, missed)
	f.targets = now
	f.mu.Unlock()
	f.look()
}

// locks are the pages of the others.
func (f *fleet) locks(filter console.LockFilter) []lockview.Page {
	return everyOther[console.LockFilter, lockview.Page](f, filter.Target, callList, filter)
}

// graphs are those of the others.
func (f *fleet) graphs(target string) []api.Graph {
	var out []api.Graph
	for _, g := range everyOther[lockAsked, asJSON[api.Graph]](f, target, callGraph, lockAsked{Target: target}) {
		out = append(out, g.V)
	}
	return out
}

// resolved is a finding that ended lately, as one of the others knows it.
func (f *fleet) resolved(fingerprint string) (locksteward.Finding, bool) {
	for _, found := range everyOther[lockAsked, []locksteward.Finding](f, "", callResolved, lockAsked{Key: fingerprint}) {
		if len(found) > 0 {
			return found[0], true
		}
	}
	return locksteward.Finding{}, false
}

// united is one graph of several. A session may wait on targets of several replicas.
func united(g api.Graph, others []api.Graph) api.Graph {
	for _, o := range others {
		for _, n := range o.Nodes {
			i := slices.IndexFunc(g.Nodes, func(have api.GraphNode) bool { return have.ID == n.ID })
			switch {
			case i < 0:
				g.Nodes = append(g.Nodes, n)
			case n.Session != nil && g.Nodes[i].Session != nil:
				g.Nodes[i].Session.Waiting += n.Session.Waiting
			}
		}
		g.Edges = append(g.Edges, o.Edges...)
		g.Cycles = append(g.Cycles, o.Cycles...)
		g.LeftOut += o.LeftOut
	}
	slices.SortFunc(g.Nodes, func(a, b api.GraphNode) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(g.Edges, func(a, b api.GraphEdge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
	return g
}
