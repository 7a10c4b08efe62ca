package rules

import (
	"fmt"
	"maps"
	"slices"
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
	return fmt.Sprintf("verdicts of death pause until %s, one longest lease after this: %s", at(e.Pause), eventLine(e).EN)
}

// eventLine says what happened to a server, and between which looks.
func eventLine(e locksteward.ServerEvent) locksteward.Text {
	what := eventPart(e)
	if e.After.IsZero() {
		return phrase("%s shortly before %s", "%s，就在 %s 之前", what, at(e.At))
	}
	return phrase("%s between %s and %s", "%s，在 %s 与 %s 之间", what, at(e.After), at(e.At))
}

func eventPart(e locksteward.ServerEvent) locksteward.Text {
	node := locksteward.DisplayKey(e.Node)
	switch e.Kind {
	case locksteward.ServerRestarted:
		return text("%s was restarted", "%s 已重启", node)
	case locksteward.ServerFailedOver:
		if e.Was != "" {
			return text("a failover made %s the master in place of %s", "故障切换使 %s 取代 %s 成为主节点", node, locksteward.DisplayKey(e.Was))
		}
		return text("a failover made %s the master", "故障切换使 %s 成为主节点", node)
	case locksteward.ServerEvicted:
		return phrase("%s evicted %s for want of memory", "%s 因内存不足淘汰了 %s", node, counted(e.Count, "key", "keys", "个键"))
	case locksteward.ServerFlushed:
		if e.Count == 0 {
			return text("data of %s was flushed (FLUSHALL or FLUSHDB)", "%s 的数据被清空（FLUSHALL 或 FLUSHDB）", node)
		}
		return phrase("data of %s was flushed (FLUSHALL, FLUSHDB or SWAPDB, %s)", "%s 的数据被清空（FLUSHALL、FLUSHDB 或 SWAPDB，%s）",
			node, counted(e.Count, "call", "calls", "次调用"))
	case locksteward.ServerClockStepped:
		if e.Step < 0 {
			return text("the clock of %s jumped back by %s", "%s 的时钟向后跳变 %s", node, dur(-e.Step))
		}
		return text("the clock of %s jumped forward by %s", "%s 的时钟向前跳变 %s", node, dur(e.Step))
	default:
		return text("%s: %s", "%s：%s", node, e.Kind)
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
func examples(first []string, n int) locksteward.Text {
	shown := first[:min(len(first), maxExamples)]
	if more := n - len(shown); more > 0 {
		return phrase("%s and %d more", "%s 等，另有 %d 个", names(shown), more)
	}
	return names(shown)
}

// locksLine names the first few of n locks.
func locksLine(first []string, n int) locksteward.Text {
	return phrase("locks: %s", "锁：%s", examples(first, n))
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
