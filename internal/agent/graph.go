package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
)

// maxGraph is how many locks a graph has: more cannot be drawn.
const maxGraph = 200

// Graph is who waits for whom on one target, or on all if it is "".
func (a *Agent) Graph(target string) (api.Graph, error) {
	if target != "" && !a.configured(target) {
		return api.Graph{}, noTarget(target)
	}
	own, err := a.ownGraph(target)
	if err != nil || a.remote == nil {
		return own, err
	}
	return mergeGraphs(own, a.remoteGraphs(target)), nil
}

// ownGraph is that of what this replica works on.
func (a *Agent) ownGraph(target string) (api.Graph, error) {
	locks, cycles := a.engine.Waits(target)
	g := graph{agent: a, nodes: map[string]*api.GraphNode{}, edges: map[edgeKey]*api.GraphEdge{}}
	in := map[api.LockKey]bool{}
	for _, c := range cycles {
		for _, m := range c.Members {
			in[api.LockKey{Target: m.Target, DB: m.DB, Key: m.Holds}] = true
		}
	}
	counted := a.counted(target, locks)
	locks = append(locks, counted...)
	waiting := func(l rules.Awaited) int { return g.waiters(l) }
	slices.SortStableFunc(locks, func(x, y rules.Awaited) int {
		inX, inY := in[keyOf(x)], in[keyOf(y)]
		switch {
		case inX != inY && inX:
			return -1
		case inX != inY:
			return 1
		}
		return cmp.Compare(waiting(y), waiting(x))
	})
	out := api.Graph{Target: target, Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}, Cycles: []api.GraphCycle{}}
	for i, l := range locks {
		if i >= maxGraph && !in[keyOf(l)] {
			out.LeftOut = len(locks) - i
			break
		}
		g.lock(l)
	}
	for _, c := range cycles {
		out.Cycles = append(out.Cycles, g.cycle(c))
	}
	for _, n := range g.nodes {
		out.Nodes = append(out.Nodes, *n)
	}
	for _, e := range g.edges {
		out.Edges = append(out.Edges, *e)
	}
	sortGraph(&out)
	return out, nil
}

// mergeGraphs adds the graphs of other replicas to one. A session may wait on targets of several replicas.
func mergeGraphs(g api.Graph, others []api.Graph) api.Graph {
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
	sortGraph(&g)
	return g
}

func sortGraph(g *api.Graph) {
	slices.SortFunc(g.Nodes, func(a, b api.GraphNode) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(g.Edges, func(a, b api.GraphEdge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
}

func keyOf(l rules.Awaited) api.LockKey { return api.LockKey{Target: l.Target, DB: l.DB, Key: l.Key} }

// counted are the locks of libraries that tell only how many wait, of which the
// rules know nothing.
func (a *Agent) counted(target string, known []rules.Awaited) []rules.Awaited {
	have := make(map[api.LockKey]bool, len(known))
	for _, l := range known {
		have[keyOf(l)] = true
	}
	var out []rules.Awaited
	for _, w := range a.watchedBy(target) {
		page := w.scanner.Table().Page(scanner.Query{Waited: true, Order: scanner.ByAge, Limit: maxGraph + len(known)})
		for _, l := range page.Locks {
			if one := (rules.Awaited{Target: l.Target, DB: l.DB, Key: l.Key, Class: l.Class}); !have[keyOf(one)] {
				out = append(out, one)
			}
		}
	}
	return out
}

// graph is one under construction.
type graph struct {
	agent *Agent
	nodes map[string]*api.GraphNode
	edges map[edgeKey]*api.GraphEdge
}

type edgeKey struct{ from, to, kind string }

// waiters counts all who wait for a lock.
func (g *graph) waiters(l rules.Awaited) int {
	seen, _ := g.seen(l)
	return max(len(l.Waiters), seen.Waiters)
}

// seen is the lock as the table has it.
func (g *graph) seen(l rules.Awaited) (locksteward.Lock, bool) {
	w, err := g.agent.watched(l.Target)
	if err != nil {
		return locksteward.Lock{}, false
	}
	return w.scanner.Table().Get(l.DB, l.Key)
}

// lock adds a lock with who has it and who waits for it.
func (g *graph) lock(l rules.Awaited) {
	seen, there := g.seen(l)
	id := lockNode(l.Target, l.DB, l.Key)
	node := &api.GraphNode{ID: id, Kind: api.NodeLock, Lock: &api.GraphLock{
		Target: l.Target, DB: l.DB, Key: api.NewKey(l.Key), Class: l.Class, Waiters: g.waiters(l), Firing: []string{},
	}}
	for _, f := range g.agent.engine.FindingsFor(l.Target, l.DB, l.Key) {
		if f.Status == locksteward.StatusFiring && !slices.Contains(node.Lock.Firing, f.Rule) {
			node.Lock.Firing = append(node.Lock.Firing, f.Rule)
		}
	}
	g.nodes[id] = node
	switch {
	case l.Session != "":
		node.Lock.Held = true
		holder := g.session(sessionNode(l.Session), l.Session, l.Holder)
		holder.Purpose = cmp.Or(holder.Purpose, l.Purpose)
		e := g.edge(sessionNode(l.Session), id, api.EdgeHolds)
		e.Since, e.Inferred, e.Calls = api.Time(l.Acquired), l.Inferred, 1
	case there:
		// The hold has no session: it stands for itself.
		node.Lock.Held = true
		from := "hold " + id
		g.session(from, "", seen.Holder)
		e := g.edge(from, id, api.EdgeHolds)
		e.Calls = 1
		if age, basis, _ := seen.Age(); basis != locksteward.AgeNone {
			e.Since = api.Time(seen.At.Add(-age))
		}
	}
	for _, w := range l.Waiters {
		name := rules.SessionOf(w)
		who := g.session(sessionNode(name), name, locksteward.Holder{Session: w.Session, Instance: w.Instance})
		who.Waiting++
		e := g.edge(sessionNode(name), id, api.EdgeWaitsFor)
		if e.Calls++; e.Calls == 1 {
			e.Since = api.Time(w.Since)
		}
	}
}

// session returns a node for a session; what is known of it already stays.
func (g *graph) session(id, name string, who locksteward.Holder) *api.GraphSession {
	n, ok := g.nodes[id]
	if !ok {
		n = &api.GraphNode{ID: id, Kind: api.NodeSession, Session: &api.GraphSession{Session: name}}
		g.nodes[id] = n
	}
	known := &n.Session.Holder
	*known = api.Holder{
		App: cmp.Or(known.App, who.App), Host: cmp.Or(known.Host, who.Host), PID: cmp.Or(known.PID, who.PID),
		Session: cmp.Or(known.Session, who.Session), Instance: cmp.Or(known.Instance, who.Instance),
	}
	return n.Session
}

func (g *graph) edge(from, to, kind string) *api.GraphEdge {
	k := edgeKey{from, to, kind}
	if g.edges[k] == nil {
		g.edges[k] = &api.GraphEdge{From: from, To: to, Kind: kind}
	}
	return g.edges[k]
}

// cycle names the round and marks its edges. Member i waits for what member i+1
// holds.
func (g *graph) cycle(c rules.Cycle) api.GraphCycle {
	out := api.GraphCycle{Nodes: []string{}, Proven: c.Proven, Victim: sessionNode(c.Members[c.Victim].Session)}
	for i, m := range c.Members {
		next := c.Members[(i+1)%len(c.Members)]
		from, to := sessionNode(m.Session), lockNode(next.Target, next.DB, next.Holds)
		out.Nodes = append(out.Nodes, from, to)
		g.edge(from, to, api.EdgeWaitsFor).Cycle = true
		g.edge(sessionNode(next.Session), to, api.EdgeHolds).Cycle = true
	}
	return out
}

func sessionNode(session string) string {
	text, b64 := locksteward.EncodeKey(session)
	return "session " + cmp.Or(b64, text)
}

func lockNode(target string, db int, key string) string {
	text, b64 := locksteward.EncodeKey(key)
	return fmt.Sprintf("lock %s/%s/%s", target, strconv.Itoa(db), cmp.Or(b64, text))
}
