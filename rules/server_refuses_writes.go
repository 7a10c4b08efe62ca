package rules

import "github.com/locksteward/locksteward"

// serverRefusesWrites reports servers on which no lock can be taken, renewed or
// released.
type serverRefusesWrites struct{}

var serverRefusesWritesDoc = Doc{
	Name:     "server/refuses-writes",
	Title:    "The server takes no writes",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause:    message("server/refuses-writes.cause"),
	Remedy:   message("server/refuses-writes.remedy"),
}

// Doc implements [Rule].
func (serverRefusesWrites) Doc() Doc { return serverRefusesWritesDoc }

// Evaluate implements [Rule].
func (serverRefusesWrites) Evaluate(in Input) Verdict {
	bad, v := in.atFault(func(n locksteward.NodeState) bool { return len(n.Refusals) > 0 },
		"no server of the target was seen to refuse writes")
	if len(bad) == 0 {
		return v
	}
	return in.fires(locksteward.Finding{
		Summary: message("server/refuses-writes.summary", addrs(bad)),
		Evidence: nodeLines(bad, func(n locksteward.NodeState) locksteward.Message {
			why := refusalPart(n.Refusals[0])
			for _, r := range n.Refusals[1:] {
				why = message("both", why, refusalPart(r))
			}
			return why
		}),
	})
}

// refusalPart says why writes are refused, and how many were.
func refusalPart(r locksteward.Refusal) locksteward.Message {
	why := message("server/refuses-writes.saving-fails")
	if r.Reason == locksteward.RefusalTooFewReplicas {
		why = message("server/refuses-writes.too-few-replicas", message("count.replicas", r.Replicas))
	}
	if r.Count == 0 {
		return why
	}
	return message("server/refuses-writes.refused", why, message("count.commands", r.Count), r.After, r.At)
}
