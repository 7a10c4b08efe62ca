package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Situation is what the last sweep of a target told beyond its locks. It is
// replaced whole by the next sweep and never changed. A nil Situation is "no
// sweep yet".
type Situation struct {
	// At is the server time of that sweep.
	At     time.Time
	Nodes  []locksteward.NodeState
	Events []locksteward.ServerEvent
	// HadLocks says that this sweep or one before it saw a lock: a server without
	// any has none to lose.
	HadLocks bool
	// Silent are the holders' processes whose heartbeat is gone, and Alive those
	// that beat, by id.
	Silent map[string]*locksteward.Silence
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
		At: s.At, Nodes: s.Nodes, Events: s.Events,
		Silent: make(map[string]*locksteward.Silence, len(s.Silent)),
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
	return fmt.Sprintf("verdicts of death pause until %s, one longest lease after this: %s", at(e.Pause), eventLine(e))
}

// eventLine says what happened to a server, and between which looks.
func eventLine(e locksteward.ServerEvent) string {
	node := locksteward.DisplayKey(e.Node)
	var what string
	switch e.Kind {
	case locksteward.ServerRestarted:
		what = node + " was restarted"
	case locksteward.ServerFailedOver:
		what = "a failover made " + node + " the master"
		if e.Was != "" {
			what += " in place of " + locksteward.DisplayKey(e.Was)
		}
	case locksteward.ServerEvicted:
		what = fmt.Sprintf("%s evicted %s for want of memory", node, count64(e.Count, "key", "keys"))
	case locksteward.ServerFlushed:
		what = fmt.Sprintf("data of %s was flushed (FLUSHALL, FLUSHDB or SWAPDB, %s)", node, count64(e.Count, "call", "calls"))
	case locksteward.ServerClockStepped:
		what = fmt.Sprintf("the clock of %s jumped forward by %s", node, dur(e.Step))
		if e.Step < 0 {
			what = fmt.Sprintf("the clock of %s jumped back by %s", node, dur(-e.Step))
		}
	default:
		what = fmt.Sprintf("%s: %s", node, e.Kind)
	}
	if e.After.IsZero() {
		return fmt.Sprintf("%s shortly before %s", what, at(e.At))
	}
	return fmt.Sprintf("%s between %s and %s", what, at(e.After), at(e.At))
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

func count64(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// examples lists at most maxExamples of what there is.
func examples(all []string) string {
	if extra := len(all) - maxExamples; extra > 0 {
		return strings.Join(all[:maxExamples], ", ") + fmt.Sprintf(" and %d more", extra)
	}
	return strings.Join(all, ", ")
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
