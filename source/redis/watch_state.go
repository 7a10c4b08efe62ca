package redis

import (
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward/source"
)

// WatchState implements [source.Source]. Without a running
// [Source.Watch] its mode is sweep.
func (s *Source) WatchState() source.WatchState {
	w := s.watch
	now := time.Now()
	state := source.WatchState{
		Mode: source.WatchTracking, Missed: w.missed.Load(), Events: w.events.Load(), Reads: w.reads.Load(),
	}
	w.mu.Lock()
	running, plan := w.running, w.plan
	state.Blind = w.blind
	w.mu.Unlock()
	state.Delay = w.delay(now)
	nodes := w.all()
	for _, n := range nodes {
		node := n.state()
		state.Nodes = append(state.Nodes, node)
		state.Blind += n.blindUntil(now)
		state.Waiting += n.queue.size()
		if rank(node.Mode) < rank(state.Mode) || state.Mode == node.Mode && state.Reason == "" {
			state.Mode, state.Reason = node.Mode, node.Reason
		}
	}
	slices.SortFunc(state.Nodes, func(a, b source.NodeWatch) int { return strings.Compare(a.Addr, b.Addr) })
	switch {
	case !running:
		state.Mode, state.Reason = source.WatchSweep, "nothing watches the target; only sweeps report it"
	case len(nodes) == 0:
		state.Mode, state.Reason = source.WatchSweep, "no master is known; see the target's state"
	}
	state.Classes = slices.Clone(plan.classes)
	if state.Mode == source.WatchSweep {
		for i := range state.Classes {
			state.Classes[i].Coverage, state.Classes[i].Reason = source.CoverageNone, state.Reason
		}
	}
	return state
}

// rank orders modes by how much they tell.
func rank(m source.WatchMode) int {
	return slices.Index([]source.WatchMode{source.WatchSweep, source.WatchKeyspace, source.WatchTracking}, m)
}

// state returns how the master is watched. Keyspace notifications count only
// when they have come and sweeps have found nothing that they did not tell.
func (n *nodeWatch) state() source.NodeWatch {
	n.mu.Lock()
	defer n.mu.Unlock()
	mode, prefixes := n.mode, slices.Clone(n.plan.prefixes)
	if mode == source.WatchTracking {
		prefixes = tracked(prefixes)
	}
	if !n.watching() {
		mode = source.WatchSweep
	}
	return source.NodeWatch{
		Addr: n.addr, Mode: mode, Reason: n.reason, Since: n.since, LastGood: n.lastGood, Repaired: n.repaired,
		Prefixes: prefixes,
	}
}

// blindSince returns since when changes may go unseen: the begin of the blind
// interval under way, or the last good check.
func (n *nodeWatch) blindSince() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.blindFrom.IsZero() {
		return n.blindFrom
	}
	return n.lastGood
}

// blindUntil returns for how long the master was not watched until now, from
// when it first was.
func (n *nodeWatch) blindUntil(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	blind := n.blind
	if !n.blindFrom.IsZero() {
		blind += now.Sub(n.blindFrom)
	}
	return blind
}
