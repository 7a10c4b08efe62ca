// Package lockview answers what people ask about the locks that the agent knows: pages of locks, and the graph of who waits
// for whom. It reads tables and findings as they are and delays neither sweeps nor rules.
package lockview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
)

// maxGraph is the number of locks in a graph: more cannot be drawn.
const maxGraph = 200

// Target is a target whose locks are shown.
type Target struct {
	locksteward.Target
	Table *scanner.Table
	Now   func() time.Time // by the clock of its server; zero while unknown
}

// Findings is the part of [rules.Engine] that is shown.
type Findings interface {
	Waits(target string) ([]rules.Awaited, []rules.Cycle)
	FindingsFor(target string, db int, key string) []locksteward.Finding
	MarkOf(target string, db int, key string) rules.Mark
}

// Waits returns who waits for whom on targets; name is that of the only target, or "" for all.
func Waits(targets []Target, findings Findings, name string) api.Graph {
	locks, cycles := findings.Waits(name)
	g := graph{findings: findings, tables: map[string]*scanner.Table{}, nodes: map[string]*api.GraphNode{}, edges: map[edgeKey]*api.GraphEdge{}}
	for _, t := range targets {
		g.tables[t.Name] = t.Table
	}
	in := map[api.LockKey]bool{}
	for _, c := range cycles {
		for _, m := range c.Members {
			in[api.LockKey{Target: m.Target, DB: m.DB, Key: m.Holds}] = true
		}
	}
	locks = append(locks, counted(targets, locks)...)
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
	out := api.Graph{Target: name, Nodes: []api.GraphNode{}, Edges: []api.GraphEdge{}, Cycles: []api.GraphCycle{}}
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
	return out
}

// MergeWaits adds the graphs of other replicas to one. A session may wait on targets of several replicas.
func MergeWaits(g api.Graph, others []api.Graph) api.Graph {
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

// counted returns the locks of libraries that store only the number of waiters, which the rules do not use.
func counted(targets []Target, known []rules.Awaited) []rules.Awaited {
	have := make(map[api.LockKey]bool, len(known))
	for _, l := range known {
		have[keyOf(l)] = true
	}
	var out []rules.Awaited
	for _, t := range targets {
		page := t.Table.Page(scanner.Query{Waited: true, Order: scanner.ByAge, Limit: maxGraph + len(known)})
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
	findings Findings
	tables   map[string]*scanner.Table
	nodes    map[string]*api.GraphNode
	edges    map[edgeKey]*api.GraphEdge
}

type edgeKey struct{ from, to, kind string }

// waiters counts all who wait for a lock.
func (g *graph) waiters(l rules.Awaited) int {
	seen, _ := g.known(l)
	return max(len(l.Waiters), seen.Waiters)
}

// known returns the lock as the table has it.
func (g *graph) known(l rules.Awaited) (locksteward.Lock, bool) {
	table, ok := g.tables[l.Target]
	if !ok {
		return locksteward.Lock{}, false
	}
	return table.Get(l.DB, l.Key)
}

// lock adds a lock with who has it and who waits for it.
func (g *graph) lock(l rules.Awaited) {
	seen, there := g.known(l)
	id := lockNode(l.Target, l.DB, l.Key)
	node := &api.GraphNode{ID: id, Kind: api.NodeLock, Lock: &api.GraphLock{
		Target: l.Target, DB: l.DB, Key: api.NewKey(l.Key), Class: l.Class, Waiters: g.waiters(l), Firing: []string{},
	}}
	for _, f := range g.findings.FindingsFor(l.Target, l.DB, l.Key) {
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
		who := g.session(sessionNode(name), name, w.Who())
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

// cycle describes a cycle and marks its edges. Member i waits for what member i+1 holds.
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
