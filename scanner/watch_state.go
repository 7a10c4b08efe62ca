package scanner

import (
	"slices"
	"strings"
	"time"
)

// WatchState is how far a target is watched now.
type WatchState struct {
	// Mode is that of the least watched master: tracking, keyspace or sweep.
	Mode WatchMode
	// Reason is why it is not tracking, with the remedy; "" if it is.
	Reason string
	// Classes says it for each class, the default class last.
	Classes []ClassWatch
	Nodes   []NodeWatch // by address
	// Blind is the time in which changes may have gone unseen until the next
	// complete sweep, summed over masters, the intervals under way included.
	Blind time.Duration
	// Missed is how many changes complete sweeps found of which no push had told,
	// outside of blind intervals. It must be 0.
	Missed int64
	// Events is how many changed keys pushes named, Reads how many keys were read
	// because of pushes, deadlines and rounds.
	Events, Reads int64
	// Waiting is how many keys wait to be read.
	Waiting int
	// Delay is the longest within the last minute or half of it from a push, or from the
	// moment at which a look was due, until what it told had been handed on; what waits
	// still counts.
	Delay time.Duration
}

// NodeWatch is how one master is watched.
type NodeWatch struct {
	Addr   string
	Mode   WatchMode
	Reason string
	// Since is when this watch was set up, LastGood when the last check began that
	// found it whole; agent's clock, zero without a watch.
	Since, LastGood time.Time
	// Repaired says that a complete sweep has found all that was there before.
	Repaired bool
	Prefixes []string
}

// WatchState returns how far the target is watched. Without a running
// [Scanner.Watch] its mode is sweep.
func (s *Scanner) WatchState() WatchState {
	w := s.watch
	now := time.Now()
	state := WatchState{
		Mode: WatchTracking, Missed: w.missed.Load(), Events: w.events.Load(), Reads: w.reads.Load(),
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
	slices.SortFunc(state.Nodes, func(a, b NodeWatch) int { return strings.Compare(a.Addr, b.Addr) })
	switch {
	case !running:
		state.Mode, state.Reason = WatchSweep, "nothing watches the target; only sweeps tell of it"
	case len(nodes) == 0:
		state.Mode, state.Reason = WatchSweep, "no master is known; see the target's state"
	}
	state.Classes = slices.Clone(plan.classes)
	if state.Mode == WatchSweep {
		for i := range state.Classes {
			state.Classes[i].Coverage, state.Classes[i].Reason = CoverageNone, state.Reason
		}
	}
	return state
}

// rank orders modes by how much they tell.
func rank(m WatchMode) int {
	return slices.Index([]WatchMode{WatchSweep, WatchKeyspace, WatchTracking}, m)
}

// state returns how the master is watched. Keyspace notifications count only
// when they have come and sweeps have found nothing that they did not tell.
func (n *nodeWatch) state() NodeWatch {
	n.mu.Lock()
	defer n.mu.Unlock()
	mode, prefixes := n.mode, slices.Clone(n.plan.prefixes)
	if mode == WatchTracking {
		prefixes = tracked(prefixes)
	}
	if !n.watching() {
		mode = WatchSweep
	}
	return NodeWatch{
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
