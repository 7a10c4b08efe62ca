package rules

import "github.com/locksteward/locksteward"

// serverFailover reports failovers of late.
type serverFailover struct{}

var serverFailoverDoc = Doc{
	Name:     "server/failover",
	Title:    "Another server took over",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause:    message("server/failover.cause"),
	Remedy:   message("server/failover.remedy"),
}

// Doc implements [Rule].
func (serverFailover) Doc() Doc { return serverFailoverDoc }

// Evaluate implements [Rule].
func (serverFailover) Evaluate(in Input) Verdict {
	events := in.Situation.happened(locksteward.ServerFailedOver)
	if in.Situation == nil {
		return in.notApplicable(because(noSweep))
	}
	if len(events) == 0 {
		return in.clear(because("no failover of the target was seen lately"))
	}
	f := locksteward.Finding{
		Summary:  message("server/failover.summary", nodesOf(events)),
		Evidence: append(newest(events), join(pauseLine(in))...),
	}
	lost, keys := 0, []locksteward.Arg(nil)
	for _, e := range events {
		lost += e.Locks
		for _, key := range e.Keys {
			keys = append(keys, locksteward.LockName(key))
		}
	}
	if lost > 0 {
		f.Summary = message("server/failover.summary-lost", message("count.locks", int64(lost)), nodesOf(events))
		f.Evidence = append(f.Evidence, message("server/failover.lost", examples(keys, lost)))
		f.CounterEvidence = join(message("server.may-be-released"))
	}
	f.Evidence = append(f.Evidence, join(backLine(events))...)
	return in.fires(f)
}
