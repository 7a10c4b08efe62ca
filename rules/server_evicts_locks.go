package rules

import (
	"fmt"
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
	Cause: locksteward.Text{
		EN: "The server has a memory limit (maxmemory) and a policy that evicts keys when it is reached: allkeys-* may take any key, volatile-* those that have a TTL, which locks do. An evicted lock is free for the next client while its holder works.",
		ZH: "服务器设置了内存上限（maxmemory），且策略会在达到上限时淘汰键：allkeys-* 可能淘汰任意键，volatile-* 淘汰带过期时间的键，而锁正是如此。锁被淘汰后，在持有者仍在工作时即可被他人取得。",
	},
	Remedy: locksteward.Text{
		EN: "Keep locks on a server with maxmemory-policy noeviction, apart from caches. Until then give the server more memory than it uses, and watch locksteward_redis_evicted_keys_total.",
		ZH: "将锁放在 maxmemory-policy 为 noeviction 的服务器上，与缓存分开。在此之前，为服务器提供多于其用量的内存，并关注 locksteward_redis_evicted_keys_total。",
	},
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
		Summary: text("the server may evict locks: %s on %s", "服务器可能淘汰锁：%s（%s）", policiesOf(bad), addrs(bad)),
		Evidence: append(nodeLines(bad, func(n locksteward.NodeState) string {
			line := fmt.Sprintf("maxmemory-policy %s, %s of %s used", n.EvictionPolicy, size(max(0, n.MemoryUsed)), size(n.MemoryMax))
			if n.EvictedKeys > 0 {
				line += fmt.Sprintf(", %s evicted since its start", count64(n.EvictedKeys, "key", "keys"))
			}
			return line
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

func noEvictionYet(nodes []locksteward.NodeState) string {
	for _, n := range nodes {
		if n.EvictedKeys != 0 {
			return ""
		}
	}
	return "nothing was evicted so far"
}
