package rules

import (
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
)

// redlockMinority reports locks of a Redlock that too few of its masters have.
type redlockMinority struct{}

var redlockMinorityDoc = Doc{
	Name:     "redlock/minority",
	Title:    "A Redlock lock lives on less than a majority of its masters",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause:    message("redlock/minority.cause"),
	Remedy:   message("redlock/minority.remedy"),
}

// Doc implements [Rule].
func (redlockMinority) Doc() Doc { return redlockMinorityDoc }

// Evaluate implements [Rule].
func (redlockMinority) Evaluate(in Input) Verdict {
	q := in.Quorum
	if q == nil {
		return in.notApplicable(because("the lock is not of a configured Redlock (redlock:), its token is shared, or it is judged on another of its masters"))
	}
	n := len(q.On) + len(q.Without) + len(q.Unknown)
	if len(q.On)+len(q.Unknown) >= q.Need {
		return in.clear(func() string {
			if len(q.On) >= q.Need {
				return fmt.Sprintf("%d of %d masters of %s have it", len(q.On), n, q.Name)
			}
			return fmt.Sprintf("%d of %d masters of %s have it, and of %s it is not known since", len(q.On), n, q.Name, strings.Join(q.Unknown, ", "))
		})
	}
	l := in.Lock
	return in.fires(locksteward.Finding{
		Summary: message("redlock/minority.summary", locksteward.LockName(l.Key), locksteward.DisplayKey(q.Name), len(q.On), n, q.Need),
		Evidence: join(
			message("redlock/minority.with", names(textArgs(q.On))),
			message("redlock/minority.without", names(textArgs(q.Without))),
			unknownLine(q),
			holderLine(l.Holder),
			ttlLine(l),
		),
		CounterEvidence: join(aliveLine(l, in.Now)),
	})
}

func unknownLine(q *Quorum) locksteward.Message {
	if len(q.Unknown) == 0 {
		return locksteward.Message{}
	}
	return message("redlock/minority.unknown", names(textArgs(q.Unknown)))
}
