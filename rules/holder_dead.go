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
	Cause:    message("holder/dead.cause"),
	Remedy:   message("holder/dead.remedy"),
}

// Doc implements [Rule].
func (holderDead) Doc() Doc { return holderDeadDoc }

// Evaluate implements [Rule].
func (holderDead) Evaluate(in Input) Verdict {
	l, id := in.Lock, in.Lock.Holder.Instance
	if l.Claim == nil && l.Absence != nil {
		return judgeAbsence(in)
	}
	if l.Claim == nil || id == "" {
		return in.notApplicable(because("the lock does not name a process with a heartbeat: whether its holder lives cannot be known"))
	}
	if l.Instance != nil {
		switch {
		case l.Instance.Beat.IsZero():
			return in.notApplicable(because("the heartbeat of the holder's process could not be read"))
		case alive(l.Instance, in.Now):
			return in.clear(func() string { return english(aliveLine(l, in.Now)) })
		}
		return in.clear(func() string { return "the heartbeat of the holder's process is late, and not gone" })
	}
	var s *locksteward.MissingHeartbeat
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
	return judgeMissingHeartbeat(in, s)
}

// judgeMissingHeartbeat says what follows from a heartbeat that is missing.
func judgeMissingHeartbeat(in Input, s *locksteward.MissingHeartbeat) Verdict {
	switch proven := s.Successor != nil || s.Deleted && s.Listeners == 0; {
	case proven && s.For >= provenAfter && s.Looks >= provenLooks:
		return dead(in, s, locksteward.Proven)
	case proven:
		return in.clear(func() string {
			return english(proofLine(s)) + "; it counts when the heartbeat has been missing for " + dur(provenAfter)
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
		return dead(in, s, locksteward.Presumed)
	}
}

// absentAfter is for how long, and in how many looks, nobody must be connected from a holder's
// address for its death to be presumed.
const (
	absentAfter = 30 * time.Second
	absentLooks = 2
)

// judgeAbsence says what follows from an address of which nobody is connected any more.
func judgeAbsence(in Input) Verdict {
	l, a := in.Lock, in.Lock.Absence
	missing := max(0, in.Now.Sub(a.Since))
	if a.Looks < absentLooks || missing < absentAfter {
		return in.clear(func() string {
			return fmt.Sprintf("nobody is connected from %s for %s, in %s; death is presumed after %s in %d looks",
				locksteward.DisplayKey(a.From), dur(missing), count(a.Looks, "look", "looks"), dur(absentAfter), absentLooks)
		})
	}
	var remedy locksteward.Message // the usual one
	if l.TTL == locksteward.NoExpiry {
		remedy = message("holder/dead.remedy-row")
	}
	return in.fires(locksteward.Finding{
		Proof:   locksteward.Presumed,
		Remedy:  remedy,
		Summary: message("holder/dead.summary-absent", locksteward.LockName(l.Key), locksteward.DisplayKey(a.From)),
		Evidence: join(
			message("holder/dead.absent", locksteward.DisplayKey(a.From), missing, a.Since, message("count.looks", a.Looks)),
			holderLine(l.Holder),
			writtenLine(l),
			ttlLine(l),
			waitersLine(l),
		),
		CounterEvidence: []locksteward.Message{message("holder/dead.behind-a-pooler")},
	})
}

func writtenLine(l *locksteward.Lock) locksteward.Message {
	if l.Acquired.IsZero() {
		return locksteward.Message{}
	}
	return message("holder/dead.written", l.Acquired)
}

// proofLine is what proves the death of a silent process.
func proofLine(s *locksteward.MissingHeartbeat) locksteward.Message {
	if s.Successor != nil {
		return message("holder/dead.proof-successor", processName(s.Successor), s.Successor.Started, locksteward.DisplayKey(s.Instance.Slot))
	}
	return message("holder/dead.proof-ended")
}

func dead(in Input, s *locksteward.MissingHeartbeat, proof locksteward.Proof) Verdict {
	l, key := in.Lock, locksteward.LockName(in.Lock.Key)
	f := locksteward.Finding{
		Proof: proof,
		Evidence: join(
			groundLine(s, proof),
			message("holder/dead.silent", s.For, s.Since, message("count.looks", s.Looks)),
			lastHeartbeatLine(s),
			noListenerLine(s),
			holderLine(l.Holder),
			heldSinceLine(l),
			ttlLine(l),
			waitersLine(l),
		),
		CounterEvidence: join(listenersLine(s)),
	}
	if proof == locksteward.Proven {
		f.Summary = message("holder/dead.summary-proven", key)
		return in.fires(f)
	}
	f.Summary = message("holder/dead.summary-presumed", key, s.For)
	if l.Claim.EndsWithHeartbeat {
		f.Evidence = append(f.Evidence, message("holder/dead.ends-with-heartbeat"))
	}
	f.CounterEvidence = append(f.CounterEvidence, message("holder/dead.may-come-back"))
	return in.fires(f)
}

// groundLine is what a verdict of death rests on.
func groundLine(s *locksteward.MissingHeartbeat, proof locksteward.Proof) locksteward.Message {
	if proof == locksteward.Proven {
		return proofLine(s)
	}
	return message("holder/dead.ground")
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

func processName(i *locksteward.Instance) locksteward.Message {
	if i.Host == "" {
		return message("holder/dead.process-id", locksteward.DisplayKey(i.ID))
	}
	return message("holder/dead.process", locksteward.DisplayKey(i.ID), locksteward.DisplayKey(i.Host), i.PID)
}

func lastHeartbeatLine(s *locksteward.MissingHeartbeat) locksteward.Message {
	if s.Instance.Beat.IsZero() {
		return message("holder/dead.no-heartbeat")
	}
	return message("holder/dead.last-heartbeat", s.Instance.Beat)
}

func noListenerLine(s *locksteward.MissingHeartbeat) locksteward.Message {
	if s.Listeners != 0 {
		return locksteward.Message{}
	}
	return message("holder/dead.no-listener")
}

func listenersLine(s *locksteward.MissingHeartbeat) locksteward.Message {
	switch {
	case s.Listeners > 0:
		return message("holder/dead.listeners", message("count.connections-are", s.Listeners))
	case s.Listeners < 0:
		return message("holder/dead.listeners-unknown")
	default:
		return locksteward.Message{}
	}
}

func heldSinceLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim.Acquired.IsZero() {
		return locksteward.Message{}
	}
	return message("holder/dead.held-since", l.Claim.Acquired)
}
