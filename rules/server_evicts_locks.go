package rules

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// serverEvictsLocks reports servers that may give up locks for want of memory.
type serverEvictsLocks struct{}

var serverEvictsLocksDoc = Doc{
	Name:     "server/evicts-locks",
	Title:    "The server may evict locks",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause:    message("server/evicts-locks.cause"),
	Remedy:   message("server/evicts-locks.remedy"),
}

// Doc implements [Rule].
func (serverEvictsLocks) Doc() Doc { return serverEvictsLocksDoc }

// Evaluate implements [Rule].
func (serverEvictsLocks) Evaluate(in Input) Verdict {
	bad, v := in.atFault(evicts, "no server of the target evicts keys: no maxmemory is set, or the policy is noeviction")
	if len(bad) == 0 {
		return v
	}
	return in.fires(locksteward.Finding{
		Summary: message("server/evicts-locks.summary", policiesOf(bad), addrs(bad)),
		Evidence: append(nodeLines(bad, func(n locksteward.NodeState) locksteward.Message {
			var evicted locksteward.Message
			if n.EvictedKeys > 0 {
				evicted = message("server/evicts-locks.evicted", message("count.keys", n.EvictedKeys))
			}
			return message("server/evicts-locks.memory", n.EvictionPolicy, size(max(0, n.MemoryUsed)), size(n.MemoryMax), evicted)
		}), newest(in.Situation.happened(locksteward.ServerEvicted))...),
		CounterEvidence: join(noEvictionYet(bad)),
	})
}

// evicts says that a server may give up a key that a client may still need.
func evicts(n locksteward.NodeState) bool {
	return n.MemoryMax > 0 && (strings.HasPrefix(n.EvictionPolicy, "allkeys-") || strings.HasPrefix(n.EvictionPolicy, "volatile-"))
}

func policiesOf(nodes []locksteward.NodeState) string {
	var out []string
	seen := map[string]bool{}
	for _, n := range nodes {
		if !seen[n.EvictionPolicy] {
			seen[n.EvictionPolicy] = true
			out = append(out, n.EvictionPolicy)
		}
	}
	return strings.Join(out, ", ")
}

func noEvictionYet(nodes []locksteward.NodeState) locksteward.Message {
	for _, n := range nodes {
		if n.EvictedKeys != 0 {
			return locksteward.Message{}
		}
	}
	return message("server/evicts-locks.no-eviction-yet")
}
