package rules

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Situation is what the last sweep of a target read beyond its locks. It is
// replaced whole by the next sweep and never changed. A nil Situation is "no
// sweep yet".
type Situation struct {
	// At is the server time of that sweep.
	At     time.Time
	Nodes  []locksteward.NodeState
	Events []locksteward.ServerEvent
	// NoServerFacts: see [locksteward.Sweep.NoServerFacts].
	NoServerFacts bool
	// HadLocks says that this sweep or one before it saw a lock: a server without
	// any has none to lose.
	HadLocks bool
	// Silent are the holders' processes whose heartbeat is gone, and Alive those
	// that beat, by id.
	Silent map[string]*locksteward.MissingHeartbeat
	Alive  map[string]*locksteward.Instance
	// Drops are the holds whose fence went back, by the id of the claim.
	Drops map[string]*locksteward.FenceDrop
}

// newSituation is what s tells; nil if the target was away.
func newSituation(s locksteward.Sweep) *Situation {
	if len(s.Masters) == 0 {
		return nil
	}
	n := &Situation{
		At: s.At, Nodes: s.Nodes, Events: s.Events, NoServerFacts: s.NoServerFacts,
		Silent: make(map[string]*locksteward.MissingHeartbeat, len(s.Silent)),
		Alive:  make(map[string]*locksteward.Instance, len(s.Instances)),
		Drops:  make(map[string]*locksteward.FenceDrop, len(s.FenceDrops)),
	}
	for l := range s.AllLocks() {
		if l.Kind != locksteward.KindCandidate {
			n.HadLocks = true
			break
		}
	}
	for i := range s.Silent {
		n.Silent[s.Silent[i].Instance.ID] = &s.Silent[i]
	}
	for i := range s.Instances {
		n.Alive[s.Instances[i].ID] = &s.Instances[i]
	}
	for i := range s.FenceDrops {
		n.Drops[s.FenceDrops[i].ID] = &s.FenceDrops[i]
	}
	return n
}

// pause returns until when verdicts of death wait, and the event that makes them
// wait; false if none does.
func (s *Situation) pause(now time.Time) (locksteward.ServerEvent, bool) {
	var last locksteward.ServerEvent
	if s == nil {
		return last, false
	}
	for _, e := range s.Events {
		if e.Pause.After(now) && e.Pause.After(last.Pause) {
			last = e
		}
	}
	return last, !last.Pause.IsZero()
}

// pausedReason says why a verdict of death waits.
func pausedReason(e locksteward.ServerEvent) string {
	return fmt.Sprintf("verdicts of death pause until %s, one longest lease after this: %s", at(e.Pause), english(eventLine(e)))
}

// eventLine says what happened to a server, and between which looks.
func eventLine(e locksteward.ServerEvent) locksteward.Message {
	what := eventPart(e)
	if e.After.IsZero() {
		return message("server.event-before", what, e.At)
	}
	return message("server.event-between", what, e.After, e.At)
}

func eventPart(e locksteward.ServerEvent) locksteward.Message {
	node := locksteward.DisplayKey(e.Node)
	switch e.Kind {
	case locksteward.ServerRestarted:
		return message("server.event-restarted", node)
	case locksteward.ServerFailedOver:
		if e.Was != "" {
			return message("server.event-failover-from", node, locksteward.DisplayKey(e.Was))
		}
		return message("server.event-failover", node)
	case locksteward.ServerEvicted:
		return message("server.event-evicted", node, message("count.keys", e.Count))
	case locksteward.ServerFlushed:
		if e.Count == 0 {
			return message("server.event-flushed", node)
		}
		return message("server.event-flushed-calls", node, message("count.calls", e.Count))
	case locksteward.ServerClockStepped:
		if e.Step < 0 {
			return message("server.event-clock-back", node, -e.Step)
		}
		return message("server.event-clock-forward", node, e.Step)
	default:
		return message("server.line", node, e.Kind)
	}
}

// suspects are the events that may have ended a hold between two moments.
func (s *Situation) suspects(after, before time.Time) []locksteward.ServerEvent {
	if s == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Events), func(e locksteward.ServerEvent) bool {
		return e.At.Before(after) || e.After.After(before)
	})
}

// examples lists at most maxExamples of n, of which the first few are given at least.
func examples(first []locksteward.Arg, n int) locksteward.Message {
	shown := first[:min(len(first), maxExamples)]
	if more := n - len(shown); more > 0 {
		return message("names.more", names(shown), more)
	}
	return names(shown)
}

// locksLine names the first few of n locks.
func locksLine(first []string, n int) locksteward.Message {
	return message("lock.names", examples(lockNames(first), n))
}

// aliveElsewhere names a target other than own where the process has a
// heartbeat: a Redlock client beats on every master.
func (in Input) aliveElsewhere(own, id string) string {
	for _, target := range slices.Sorted(maps.Keys(in.situations)) {
		if s := in.situations[target]; target != own && s != nil && s.Alive[id] != nil {
			return target
		}
	}
	return ""
}
