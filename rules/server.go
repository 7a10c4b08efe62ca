package rules

import (
	"slices"

	"github.com/locksteward/locksteward"
)

// told returns the servers whose INFO is known.
func (s *Situation) told() []locksteward.NodeState {
	var out []locksteward.NodeState
	if s == nil {
		return nil
	}
	for _, n := range s.Nodes {
		if n.RunID != "" {
			out = append(out, n)
		}
	}
	return out
}

// noLocks is the reason of a rule about what may happen to locks.
const noLocks = "no lock was seen on the target: there is none to lose"

// noSweep is the reason of a rule about servers where only single keys were read.
const noSweep = "only single keys were read: sweeps judge the servers ('locksteward scan', or the agent)"

// infoUnknown is the reason of a rule about servers that do not tell.
const infoUnknown = "the servers do not tell (INFO is not allowed, or none was reached)"

// atFault returns the servers of the target that a rule finds at fault. Without
// any, v says so: fine is why nothing is wrong.
func (in Input) atFault(fault func(locksteward.NodeState) bool, fine string) (bad []locksteward.NodeState, v Verdict) {
	nodes := in.Situation.told()
	switch {
	case in.Situation == nil:
		return nil, in.notApplicable(because(noSweep))
	case len(nodes) == 0:
		return nil, in.notApplicable(because(infoUnknown))
	case !in.Situation.HadLocks:
		return nil, in.notApplicable(because(noLocks))
	}
	bad = slices.DeleteFunc(nodes, func(n locksteward.NodeState) bool { return !fault(n) })
	if len(bad) == 0 {
		return nil, in.clear(because(fine))
	}
	return bad, Verdict{}
}

// happened are the events of a kind that somebody saw happen: a server that was
// found young was not seen before it.
func (s *Situation) happened(kind locksteward.ServerEventKind) []locksteward.ServerEvent {
	var out []locksteward.ServerEvent
	if s == nil {
		return nil
	}
	for _, e := range s.Events {
		if e.Kind == kind && !e.After.IsZero() {
			out = append(out, e)
		}
	}
	return out
}

// size prints a size as a person reads it.
func size(n int64) locksteward.Text {
	switch {
	case n >= 1<<30:
		return text("%.1f GiB", "%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return text("%.1f MiB", "%.1f MiB", float64(n)/(1<<20))
	default:
		return text("%d bytes", "%d 字节", n)
	}
}

// nodeLines lists one line for each server, at most maxExamples.
func nodeLines(nodes []locksteward.NodeState, line func(locksteward.NodeState) locksteward.Text) []locksteward.Text {
	var out []locksteward.Text
	for i, n := range nodes {
		if i == maxExamples {
			return append(out, text("and %d more", "另有 %d 台", len(nodes)-maxExamples))
		}
		out = append(out, phrase("%s: %s", "%s：%s", locksteward.DisplayKey(n.Addr), line(n)))
	}
	return out
}

// addrs names servers.
func addrs(nodes []locksteward.NodeState) locksteward.Text {
	var out []string
	for _, n := range nodes {
		out = append(out, locksteward.DisplayKey(n.Addr))
	}
	return examples(out, len(out))
}

// newest are the lines of the last events, newest first, at most maxExamples.
func newest(events []locksteward.ServerEvent) []locksteward.Text {
	var out []locksteward.Text
	for i := len(events) - 1; i >= 0 && len(out) < maxExamples; i-- {
		out = append(out, eventLine(events[i]))
	}
	return out
}

// pauseLine says that and until when verdicts wait.
func pauseLine(in Input) locksteward.Text {
	e, paused := in.Situation.pause(in.Now)
	if !paused {
		return locksteward.Text{}
	}
	return text("verdicts of death (%s, host/lost, proposals by dead_when) pause until %s", "死亡判定（%s、host/lost、由 dead_when 提出的申请）暂停至 %s",
		HolderDead, at(e.Pause))
}

// nodesOf names where events happened, each server once.
func nodesOf(events []locksteward.ServerEvent) locksteward.Text {
	var out []string
	seen := map[string]bool{}
	for _, e := range events {
		if !seen[e.Node] {
			seen[e.Node] = true
			out = append(out, locksteward.DisplayKey(e.Node))
		}
	}
	return examples(out, len(out))
}

// backLine names the locks that are back with older data, if there are any.
func backLine(events []locksteward.ServerEvent) locksteward.Text {
	back, keys := 0, []string(nil)
	for _, e := range events {
		back += e.Back
		for _, key := range e.BackKeys {
			keys = append(keys, locksteward.MarkKey(key))
		}
	}
	if back == 0 {
		return locksteward.Text{}
	}
	return phrase("stand again with older data, after their end was seen, and belong to nobody: %s",
		"随较旧的数据重新出现，此前已看到其结束，不属于任何持有者：%s", examples(keys, back))
}
