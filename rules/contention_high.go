package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// minAttempts is how many acquires a window must have before their failures are
// a rate.
const minAttempts = 20

// contentionHigh reports classes whose locks are often not to be had.
type contentionHigh struct{}

var contentionHighDoc = Doc{
	Name:     "contention/high",
	Title:    "Too many acquires of a class end without the lock",
	Scope:    ScopeActivity,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause:    message("contention/high.cause"),
	Remedy:   message("contention/high.remedy"),
}

// Doc implements [Rule].
func (contentionHigh) Doc() Doc { return contentionHighDoc }

// Evaluate implements [Rule].
func (contentionHigh) Evaluate(in Input) Verdict {
	a := in.Activity
	if a == nil {
		return in.notApplicable(because("no process reported acquires of this class: only our own library counts them"))
	}
	all := a.Acquired + a.Failed
	if all < minAttempts {
		return in.notApplicable(func() string {
			return fmt.Sprintf("%d acquires are too few for a rate, %d are asked for", all, minAttempts)
		})
	}
	limit, rate := in.Class.MaxFailuresOrDefault(), float64(a.Failed)/float64(all)
	if rate <= limit {
		return in.clear(func() string {
			return fmt.Sprintf("%d of %d acquires failed (%s), within the limit of %s", a.Failed, all, percent(rate), percent(limit))
		})
	}
	return in.fires(locksteward.Finding{
		Summary: message("contention/high.summary", locksteward.DisplayKey(in.Class.Name), a.Failed, all, percent(rate), percent(limit)),
		Evidence: join(
			message("contention/high.counted-by", message("count.processes", a.Processes), a.Since),
			message("contention/high.contended", a.Contended),
			message("class.limit", in.Class.Name, percent(limit)),
		),
		CounterEvidence: join(
			otherReasonsLine(a),
			message("contention/high.by-design"),
		),
	})
}

// otherReasonsLine is the doubt that locks are in short supply at all.
func otherReasonsLine(a *Activity) locksteward.Message {
	if a.Contended >= a.Failed {
		return locksteward.Message{}
	}
	return message("contention/high.other-reasons", a.Failed-a.Contended)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
