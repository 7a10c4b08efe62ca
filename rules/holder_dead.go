package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// HolderDead is the name of the rule that judges whether a holder is dead.
const HolderDead = "holder/dead"

const (
	// provenAfter is for how long a heartbeat must be missing before a proof of
	// death counts: one TTL, in at least two looks.
	provenAfter = heartbeatTTL
	provenLooks = 2
	// presumedAfter is the silence from which death is presumed.
	presumedAfter = 3 * heartbeatTTL
	presumedLooks = 3
)

// holderDead reports locks whose holder's process is dead.
type holderDead struct{}

var holderDeadDoc = Doc{
	Name:     HolderDead,
	Title:    "The process that holds a lock is dead",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "The process ended without releasing the lock (crash, kill -9, out of memory, machine lost), and the lease is long or has no end.",
		ZH: "进程未释放锁就已结束（崩溃、kill -9、内存不足、机器丢失），而租约很长或没有期限。",
	},
	Remedy: locksteward.Text{
		EN: "Make sure that the process is gone, and free the lock: request a release, or wait for the TTL. " +
			"Then take a short TTL with renewal, so that the lock of a dead process frees itself within seconds.",
		ZH: "确认进程确已不存在，然后释放锁：提交释放请求，或等待过期。" +
			"之后使用较短的过期时间并自动续期，使死亡进程的锁在数秒内自行释放。",
	},
}

// Doc implements [Rule].
func (holderDead) Doc() Doc { return holderDeadDoc }

// Evaluate implements [Rule].
func (holderDead) Evaluate(in Input) Verdict {
	l, id := in.Lock, in.Lock.Holder.Instance
	if l.Claim == nil || id == "" {
		return in.notApplicable(because("the lock does not name a process with a heartbeat: whether its holder lives cannot be known"))
	}
	if l.Instance != nil {
		switch {
		case l.Instance.Beat.IsZero():
			return in.notApplicable(because("the heartbeat of the holder's process could not be read"))
		case alive(l.Instance, in.Now):
			return in.clear(func() string { return aliveLine(l, in.Now) })
		}
		return in.clear(func() string { return "the heartbeat of the holder's process is late, and not gone" })
	}
	var s *locksteward.Silence
	if in.Situation != nil {
		if in.Situation.Alive[id] != nil {
			return in.clear(because("the heartbeat of the holder's process was there at the last sweep"))
		}
		s = in.Situation.Silent[id]
	}
	if s == nil {
		return in.notApplicable(because("the heartbeat of the holder's process is gone, and no complete look has missed it before"))
	}
	if target := in.aliveElsewhere(l.Target, id); target != "" {
		return in.clear(func() string { return fmt.Sprintf("the holder's process has a heartbeat on target %s", target) })
	}
	if sign := signOfLife(l); sign.After(s.Since) {
		return in.clear(func() string {
			return fmt.Sprintf("the holder renewed the lock or reported progress at %s, after its heartbeat was missed first", at(sign))
		})
	}
	if e, paused := in.Situation.pause(in.Now); paused {
		return in.notApplicable(func() string { return pausedReason(e) })
	}
	return judgeSilence(in, s)
}

// judgeSilence says what follows from a heartbeat that is missing.
func judgeSilence(in Input, s *locksteward.Silence) Verdict {
	proof := proofLine(s)
	switch {
	case proof != "" && s.For >= provenAfter && s.Looks >= provenLooks:
		return dead(in, s, locksteward.Proven, proof)
	case proof != "":
		return in.clear(func() string {
			return proof + "; it counts when the heartbeat has been missing for " + dur(provenAfter)
		})
	case s.Listeners < 0:
		return in.notApplicable(because("whether the holder's process still has a connection cannot be known: PUBSUB NUMSUB was not answered"))
	case s.Listeners > 0:
		return in.clear(func() string {
			return fmt.Sprintf("the heartbeat is missing for %s, but the holder's process still has %s to its channel",
				dur(s.For), count(s.Listeners, "subscription", "subscriptions"))
		})
	case s.For < presumedAfter || s.Looks < presumedLooks:
		return in.clear(func() string {
			return fmt.Sprintf("the heartbeat is missing for %s, in %s; death is presumed after %s in %d looks",
				dur(s.For), count(s.Looks, "look", "looks"), dur(presumedAfter), presumedLooks)
		})
	default:
		return dead(in, s, locksteward.Presumed, "")
	}
}

// proofLine is what proves the death of a silent process, "" if nothing does.
func proofLine(s *locksteward.Silence) string {
	switch {
	case s.Successor != nil:
		return fmt.Sprintf("proven: %s was started at %s in the same declared slot %s, after the last heartbeat of this one",
			processName(s.Successor), at(s.Successor.Started), locksteward.DisplayKey(s.Instance.Slot))
	case s.Deleted && s.Listeners == 0:
		return "proven: the process said farewell: its heartbeat was deleted before its time, while nothing happened to the server, and it is not connected"
	default:
		return ""
	}
}

func dead(in Input, s *locksteward.Silence, proof locksteward.Proof, line string) Verdict {
	l, key := in.Lock, locksteward.DisplayKey(in.Lock.Key)
	f := locksteward.Finding{
		Proof: proof,
		Evidence: join(
			line,
			fmt.Sprintf("its heartbeat is missing for %s, since %s, in %s without a break", dur(s.For), at(s.Since), count(s.Looks, "look", "looks")),
			lastHeardLine(s),
			noListenerLine(s),
			holderLine(l.Holder),
			heldSinceLine(l),
			ttlLine(l),
			waitersLine(l),
		),
		CounterEvidence: join(listenersLine(s)),
	}
	if proof == locksteward.Proven {
		f.Summary = text("lock %s is held by a process that is dead: proven", "锁 %s 的持有者进程已死亡：已证实", key)
		return in.fires(f)
	}
	f.Evidence = append([]string{"presumed: nothing but its silence says that the process is dead"}, f.Evidence...)
	f.Summary = text("lock %s is held by a process that is presumed dead: silent for %s",
		"推定锁 %s 的持有者进程已死亡：已静默 %s", key, dur(s.For))
	if l.Claim.EndsWithHeartbeat {
		f.Evidence = append(f.Evidence, "the holder promised to stop working before its heartbeat ran out (ends_with_heartbeat)")
	}
	f.CounterEvidence = append(f.CounterEvidence,
		"a process that cannot reach this server, or is frozen with its machine, is silent too, and may come back and write")
	return in.fires(f)
}

// signOfLife is when the holder last did something that only it can do.
func signOfLife(l *locksteward.Lock) time.Time {
	last := l.History.LastRenewal
	for _, t := range []time.Time{l.Claim.Renewed, l.Claim.Progress, l.Claim.Acquired} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

func processName(i *locksteward.Instance) string {
	if i.Host == "" {
		return "instance " + locksteward.DisplayKey(i.ID)
	}
	return fmt.Sprintf("instance %s (host %s, pid %d)", locksteward.DisplayKey(i.ID), locksteward.DisplayKey(i.Host), i.PID)
}

func lastHeardLine(s *locksteward.Silence) string {
	if s.Instance.Beat.IsZero() {
		return "no heartbeat of it was ever seen from here"
	}
	return fmt.Sprintf("its last heartbeat that was seen is of %s", at(s.Instance.Beat))
}

func noListenerLine(s *locksteward.Silence) string {
	if s.Listeners != 0 {
		return ""
	}
	return "no connection is subscribed to its channel (PUBSUB NUMSUB is 0)"
}

func listenersLine(s *locksteward.Silence) string {
	switch {
	case s.Listeners > 0:
		return count(s.Listeners, "connection is", "connections are") + " still subscribed to its channel"
	case s.Listeners < 0:
		return "whether it still has a connection is not known: PUBSUB NUMSUB was not answered"
	default:
		return ""
	}
}

func heldSinceLine(l *locksteward.Lock) string {
	if l.Claim.Acquired.IsZero() {
		return ""
	}
	return "acquired at " + at(l.Claim.Acquired)
}
