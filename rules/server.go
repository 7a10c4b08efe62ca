package rules

import (
	"fmt"
	"slices"

	"github.com/locksteward/locksteward"
)

// reporting returns the servers that reported their state.
func (s *Situation) reporting() []locksteward.NodeState {
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

// notReported is the reason of a rule about servers that did not report their state.
const notReported = "the servers do not report their state (the scanning user may not ask for it, or none was reached)"

// noServerFacts is the reason of a rule about servers for a store that has no such facts.
const noServerFacts = "servers of this kind do not report what the rule is about"

// judgeServers evaluates a rule of ScopeTarget.
func judgeServers(r Rule, in Input) Verdict {
	if in.Situation != nil && in.Situation.NoServerFacts {
		return in.notApplicable(because(noServerFacts))
	}
	return r.Evaluate(in)
}

// atFault returns the servers of the target that a rule finds at fault. Without
// any, v says so: fine is why nothing is wrong.
func (in Input) atFault(fault func(locksteward.NodeState) bool, fine string) (bad []locksteward.NodeState, v Verdict) {
	nodes := in.Situation.reporting()
	switch {
	case in.Situation == nil:
		return nil, in.notApplicable(because(noSweep))
	case len(nodes) == 0:
		return nil, in.notApplicable(because(notReported))
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
func size(n int64) locksteward.Message {
	switch {
	case n >= 1<<30:
		return message("size.gib", fmt.Sprintf("%.1f", float64(n)/(1<<30)))
	case n >= 1<<20:
		return message("size.mib", fmt.Sprintf("%.1f", float64(n)/(1<<20)))
	default:
		return message("size.bytes", n)
	}
}

// nodeLines lists one line for each server, at most maxExamples.
func nodeLines(nodes []locksteward.NodeState, line func(locksteward.NodeState) locksteward.Message) []locksteward.Message {
	var out []locksteward.Message
	for i, n := range nodes {
		if i == maxExamples {
			return append(out, message("server.more", len(nodes)-maxExamples))
		}
		out = append(out, message("server.line", locksteward.DisplayKey(n.Addr), line(n)))
	}
	return out
}

// addrs names servers.
func addrs(nodes []locksteward.NodeState) locksteward.Message {
	var out []string
	for _, n := range nodes {
		out = append(out, locksteward.DisplayKey(n.Addr))
	}
	return examples(textArgs(out), len(out))
}

// newest are the lines of the last events, newest first, at most maxExamples.
func newest(events []locksteward.ServerEvent) []locksteward.Message {
	var out []locksteward.Message
	for i := len(events) - 1; i >= 0 && len(out) < maxExamples; i-- {
		out = append(out, eventLine(events[i]))
	}
	return out
}

// pauseLine says that and until when verdicts wait.
func pauseLine(in Input) locksteward.Message {
	e, paused := in.Situation.pause(in.Now)
	if !paused {
		return locksteward.Message{}
	}
	return message("server.pause", HolderDead, e.Pause)
}

// nodesOf names where events happened, each server once.
func nodesOf(events []locksteward.ServerEvent) locksteward.Message {
	var out []string
	seen := map[string]bool{}
	for _, e := range events {
		if !seen[e.Node] {
			seen[e.Node] = true
			out = append(out, locksteward.DisplayKey(e.Node))
		}
	}
	return examples(textArgs(out), len(out))
}

// backLine names the locks that are back with older data, if there are any.
func backLine(events []locksteward.ServerEvent) locksteward.Message {
	back, keys := 0, []locksteward.Arg(nil)
	for _, e := range events {
		back += e.Back
		for _, key := range e.BackKeys {
			keys = append(keys, locksteward.LockName(key))
		}
	}
	if back == 0 {
		return locksteward.Message{}
	}
	return message("server.back", examples(keys, back))
}
