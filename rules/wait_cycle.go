package rules

import (
	"time"

	"github.com/locksteward/locksteward"
)

// WaitCycle is the id of the rule whose pending findings are worth a second look
// at once: two reads of the same holds and waits prove a deadlock.
const WaitCycle = "wait/cycle"

// Cycle is a round of sessions, each of which waits for a lock that the next one
// has, in their order.
type Cycle struct {
	Members []CycleMember
	// Victim is the index of the member whose end is suggested.
	Victim int
	// Proven says that two reads saw the same holds and waits, with a moment at
	// which all of them were there.
	Proven bool
}

// CycleMember is one session of a [Cycle].
type CycleMember struct {
	Session string
	// Waits is its call that waits; Holds, HeldClass, Claim, Acquired, Purpose
	// and Holder are the hold of its own that the member before it waits for.
	Waits     locksteward.Waiter
	Target    string
	DB        int
	Holds     string // key, exact bytes
	HeldClass string
	Claim     string
	Acquired  time.Time // zero: not known
	Purpose   string
	Holder    locksteward.Holder
	// Inferred says that only another lock of the session tells that it has this
	// one.
	Inferred bool
	// Calls is how many calls of the session wait: others of it may go on.
	Calls int
}

// waitCycle reports deadlocks: sessions that wait for each other.
type waitCycle struct{}

var waitCycleDoc = Doc{
	Name:         WaitCycle,
	Title:        "Sessions wait for each other's locks",
	Scope:        ScopeCycle,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "warning where one of the locks does not name its session itself",
	Risk:         locksteward.RiskDeadlock,
	Cause:        message("wait/cycle.cause"),
	Remedy:       message("wait/cycle.remedy"),
}

// Doc implements [Rule].
func (waitCycle) Doc() Doc { return waitCycleDoc }

// Evaluate implements [Rule].
func (waitCycle) Evaluate(in Input) Verdict {
	c := in.Cycle
	if c == nil || len(c.Members) == 0 {
		return in.notApplicable(because("no session that waits for this lock, or holds it, is in a cycle"))
	}
	victim := c.Members[c.Victim]
	f := locksteward.Finding{
		Summary: cycleSummary(c),
		Evidence: join(append(cycleLines(c, in.Now),
			cycleProofLine(c),
			message("wait/cycle.victim", locksteward.DisplayKey(victim.Session), locksteward.LockName(victim.Holds), victimAside(victim.Holder)),
		)...),
		CounterEvidence: join(cycleOnceLine(c), cycleInferredLine(c), cycleCallsLine(c)),
	}
	for _, m := range c.Members {
		if m.Inferred {
			f.Severity = locksteward.SeverityWarning
		}
	}
	return in.fires(f)
}

func cycleSummary(c *Cycle) locksteward.Message {
	var keys []string
	for _, m := range c.Members {
		keys = append(keys, m.Holds)
	}
	if len(keys) == 1 {
		return message("wait/cycle.summary-alone", locksteward.LockName(keys[0]))
	}
	shown := names(lockNames(keys[:min(len(keys), maxExamples)]))
	if more := len(keys) - maxExamples; more > 0 {
		shown = message("wait/cycle.locks-more", shown, more, len(keys))
	}
	return message("wait/cycle.summary", len(keys), shown)
}

// maxCycleLines bounds the evidence: a round may have hundreds of members.
const maxCycleLines = 20

// cycleLines has one line for each member.
func cycleLines(c *Cycle, now time.Time) []locksteward.Message {
	var lines []locksteward.Message
	for i, m := range c.Members {
		if i == maxCycleLines {
			lines = append(lines, message("wait/cycle.more", len(c.Members)-i))
			break
		}
		var elsewhere, since locksteward.Message
		if m.Waits.Target != m.Target {
			elsewhere = onTarget(m.Waits.Target, m.Waits.DB)
		}
		if !m.Waits.Since.IsZero() {
			since = message("wait/cycle.waits-since", m.Waits.Since, max(0, now.Sub(m.Waits.Since)))
		}
		lines = append(lines, message("wait/cycle.member", locksteward.DisplayKey(m.Session), onTarget(m.Target, m.DB), locksteward.LockName(m.Holds), memberAside(m), elsewhere, locksteward.LockName(m.Waits.Key), since))
	}
	return lines
}

// onTarget stands behind the lock in English, and before it in Chinese.
func onTarget(target string, db int) locksteward.Message {
	if db != 0 {
		return message("wait/cycle.on-target-db", target, db)
	}
	return message("wait/cycle.on-target", target)
}

// memberAside says since when and what for a member has its lock.
func memberAside(m CycleMember) locksteward.Message {
	parts := named(m.Holder.App, m.Holder.Host)
	if !m.Acquired.IsZero() && !m.Inferred {
		parts = append(parts, message("wait/cycle.held-since", m.Acquired))
	}
	if m.Purpose != "" {
		parts = append(parts, purposePart(m.Purpose))
	}
	return inBrackets(parts)
}

func victimAside(h locksteward.Holder) locksteward.Message {
	parts := named("", h.Host)
	if h.PID != 0 {
		parts = append(parts, message("lock.pid", h.PID))
	}
	return inBrackets(parts)
}

func cycleProofLine(c *Cycle) locksteward.Message {
	if !c.Proven {
		return locksteward.Message{}
	}
	return message("wait/cycle.proof")
}

func cycleOnceLine(c *Cycle) locksteward.Message {
	if c.Proven {
		return locksteward.Message{}
	}
	return message("wait/cycle.once")
}

func cycleInferredLine(c *Cycle) locksteward.Message {
	for _, m := range c.Members {
		if m.Inferred {
			return message("wait/cycle.inferred", locksteward.LockName(m.Holds), locksteward.DisplayKey(m.Session))
		}
	}
	return locksteward.Message{}
}

func cycleCallsLine(c *Cycle) locksteward.Message {
	for _, m := range c.Members {
		if m.Calls > 1 {
			return message("wait/cycle.calls", m.Calls, locksteward.DisplayKey(m.Session))
		}
	}
	return locksteward.Message{}
}
