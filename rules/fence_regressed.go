package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// fenceRegressed reports holds whose fence is not above all earlier ones: what
// the lock protects refuses the holder, or, where it did not see the larger one,
// no longer tells old from new.
type fenceRegressed struct{}

var fenceRegressedDoc = Doc{
	Name:     "fence/regressed",
	Title:    "A fence went backwards",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityCritical,
	Cause:    message("fence/regressed.cause"),
	Remedy:   message("fence/regressed.remedy"),
}

// Doc implements [Rule].
func (fenceRegressed) Doc() Doc { return fenceRegressedDoc }

// Evaluate implements [Rule].
func (fenceRegressed) Evaluate(in Input) Verdict {
	l := in.Lock
	id, fence := l.TokenDigest, l.Fence
	if l.Claim != nil {
		id, fence = l.Claim.ID, l.Claim.Fence
	}
	var d *locksteward.FenceDrop
	if in.Situation != nil && id != "" {
		d = in.Situation.Drops[id]
	}
	if d != nil && d.Key == l.Key && fence == 0 && l.Claim == nil {
		fence = d.Fence // the counter was not read this time
	}
	switch {
	case fence == 0:
		return in.notApplicable(because("the lock has no fence"))
	case d == nil || d.Key != l.Key:
		return in.clear(func() string { return fmt.Sprintf("fence %d is not known to be below an earlier one", fence) })
	case fence > d.Highest:
		return in.clear(func() string { return fmt.Sprintf("fence %d was raised above the earlier %d", fence, d.Highest) })
	}
	return in.fires(locksteward.Finding{
		Summary: message("fence/regressed.summary", locksteward.LockName(l.Key), fence, d.Highest),
		Evidence: append(join(
			message("fence/regressed.fences", fence, d.Highest, d.At),
			counterLine(d),
			acquiredLine(l),
			holderLine(l.Holder),
		), suspectLines(in.Situation.suspects(d.At, in.Now))...),
		CounterEvidence: join(
			message("fence/regressed.fence-unseen"),
		),
	})
}

func counterLine(d *locksteward.FenceDrop) locksteward.Message {
	if d.Counter == "" {
		return locksteward.Message{}
	}
	return message("fence/regressed.counter", locksteward.LockName(d.Counter))
}

func acquiredLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim == nil {
		return locksteward.Message{}
	}
	return heldSinceLine(l)
}

// suspectLines lists what happened to the servers.
func suspectLines(events []locksteward.ServerEvent) []locksteward.Message {
	var out []locksteward.Message
	for _, e := range events {
		out = append(out, eventLine(e))
	}
	return out
}
