package rules

import "github.com/locksteward/locksteward"

// handoffLapsed reports locks of our own library that a release handed to a waiter
// which did not confirm them in time.
type handoffLapsed struct{}

var handoffLapsedDoc = Doc{
	Name:     "wait/handoff-lapsed",
	Title:    "A waiter did not take up the lock that it was handed",
	Scope:    ScopeLoss,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause:    message("wait/handoff-lapsed.cause"),
	Remedy:   message("wait/handoff-lapsed.remedy"),
}

// Doc implements [Rule].
func (handoffLapsed) Doc() Doc { return handoffLapsedDoc }

// Evaluate implements [Rule].
func (handoffLapsed) Evaluate(in Input) Verdict {
	s := in.Loss
	if s.How != locksteward.EndedLapsed {
		return in.clear(func() string { return "it was held" })
	}
	f := locksteward.Finding{
		Severity: locksteward.SeverityInfo,
		Summary:  message("wait/handoff-lapsed.summary", locksteward.LockName(s.Key)),
		Evidence: join(
			message("wait/handoff-lapsed.until", s.Deadline, s.At),
			holderLine(s.Holder),
			fenceLine(s),
		),
		Cause:  handoffLapsedDoc.Cause,
		Remedy: handoffLapsedDoc.Remedy,
	}
	if s.Instance != nil {
		f.Evidence = append(f.Evidence, lastBeatLine(s.Instance.Beat))
	}
	return in.fires(f)
}
