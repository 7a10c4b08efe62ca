package rules

import "github.com/locksteward/locksteward"

// serverNotDurable reports servers that forget locks when they end.
type serverNotDurable struct{}

var serverNotDurableDoc = Doc{
	Name:     "server/not-durable",
	Title:    "The server loses locks when it restarts",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause:    message("server/not-durable.cause"),
	Remedy:   message("server/not-durable.remedy"),
}

// Doc implements [Rule].
func (serverNotDurable) Doc() Doc { return serverNotDurableDoc }

// Evaluate implements [Rule].
func (serverNotDurable) Evaluate(in Input) Verdict {
	bad, v := in.atFault(func(n locksteward.NodeState) bool { return len(forgets(n)) > 0 },
		"every server of the target writes a log or has a replica, and saving works")
	if len(bad) == 0 {
		return v
	}
	return in.fires(locksteward.Finding{
		Summary:         message("server/not-durable.summary", addrs(bad)),
		Evidence:        nodeLines(bad, whyLost),
		CounterEvidence: join(snapshotsLine(bad)),
	})
}

// forgets says why a server may forget: at most two reasons.
func forgets(n locksteward.NodeState) []locksteward.Message {
	var out []locksteward.Message
	if !n.AOF && n.Replicas == 0 {
		out = append(out, message("server/not-durable.no-log"))
	}
	if !n.LastSaveOK {
		out = append(out, message("server/not-durable.saving-fails"))
	}
	return out
}

func whyLost(n locksteward.NodeState) locksteward.Message {
	why := forgets(n)
	if len(why) == 1 {
		return why[0]
	}
	return message("both", why[0], why[1])
}

func snapshotsLine(nodes []locksteward.NodeState) locksteward.Message {
	var newest locksteward.NodeState
	for _, n := range nodes {
		if n.LastSave.After(newest.LastSave) {
			newest = n
		}
	}
	if newest.LastSave.IsZero() || newest.ChangesUnsaved < 0 {
		return locksteward.Message{}
	}
	return message("server/not-durable.snapshots", locksteward.DisplayKey(newest.Addr), newest.LastSave, message("count.changes", newest.ChangesUnsaved))
}
