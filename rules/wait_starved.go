package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// waitStarved reports locks for which somebody has waited too long.
type waitStarved struct{}

var waitStarvedDoc = Doc{
	Name:     "wait/starved",
	Title:    "Somebody waits too long for a lock",
	Scope:    ScopeWaiters,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause:    message("wait/starved.cause"),
	Remedy:   message("wait/starved.remedy"),
}

// Doc implements [Rule].
func (waitStarved) Doc() Doc { return waitStarvedDoc }

// Evaluate implements [Rule].
func (waitStarved) Evaluate(in Input) Verdict {
	limit := in.Class.MaxWait
	if limit <= 0 {
		return in.notApplicable(func() string { return fmt.Sprintf("class %q has no max_wait", in.Class.Name) })
	}
	if len(in.Waiters) == 0 {
		return in.clear(because("nobody is known to wait for the lock"))
	}
	longest, starved := in.Waiters[0], 0
	for _, w := range in.Waiters {
		if waited(w, in.Now) > waited(longest, in.Now) {
			longest = w
		}
		if waited(w, in.Now) > limit {
			starved++
		}
	}
	most := waited(longest, in.Now)
	if starved == 0 {
		return in.clear(func() string {
			return fmt.Sprintf("%s, for %s at most, within the limit of %s", english(countWaits(len(in.Waiters))), dur(most), dur(limit))
		})
	}
	return in.fires(locksteward.Finding{
		Summary: message("wait/starved.summary", locksteward.LockName(longest.Key), most, limit),
		Evidence: join(
			message("wait/starved.count", countWaits(len(in.Waiters)), starved, limit, in.Class.Name),
			message("wait/starved.longest-since", longest.Since, whoWaits(longest)),
			holdLine(in.Lock),
			heldByLine(in.Lock),
		),
		CounterEvidence: join(turnoverLine(in.Lock, longest)),
	})
}

// waited is how long w has waited.
func waited(w locksteward.Waiter, now time.Time) time.Duration {
	if w.Since.IsZero() {
		return 0
	}
	return max(0, now.Sub(w.Since))
}

func countWaits(n int) locksteward.Message { return message("count.calls-wait", n) }

func whoWaits(w locksteward.Waiter) locksteward.Message {
	parts := holderParts(w.Who())
	if len(parts) == 0 {
		return locksteward.Message{}
	}
	return message("wait/starved.longest-by", list(parts))
}

// holdLine says for how long the present holder has had the lock.
func holdLine(l *locksteward.Lock) locksteward.Message {
	if l == nil {
		return message("wait/starved.not-held")
	}
	age, basis, minimum := l.Age()
	switch {
	case basis == locksteward.AgeNone:
		return locksteward.Message{}
	case minimum:
		return message("wait/starved.held-at-least", age)
	default:
		return message("wait/starved.held", age)
	}
}

func heldByLine(l *locksteward.Lock) locksteward.Message {
	if l == nil {
		return locksteward.Message{}
	}
	return holderLine(l.Holder)
}

// turnoverLine is the doubt that the lock is stuck: it has changed hands while
// this one waited.
func turnoverLine(l *locksteward.Lock, w locksteward.Waiter) locksteward.Message {
	if l == nil || l.Claim == nil || !l.Claim.Acquired.After(w.Since) {
		return locksteward.Message{}
	}
	return message("wait/starved.turnover", l.Claim.Acquired)
}
