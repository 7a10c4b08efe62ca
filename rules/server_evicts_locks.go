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
		Summary: phrase("the server may evict locks: %s on %s", "服务器可能淘汰锁：%s（%s）", policiesOf(bad), addrs(bad)),
		Evidence: append(nodeLines(bad, func(n locksteward.NodeState) locksteward.Text {
			var evicted locksteward.Text
			if n.EvictedKeys > 0 {
				evicted = phrase(", %s evicted since its start", "，自启动以来已淘汰 %s", counted(n.EvictedKeys, "key", "keys", "个键"))
			}
			return phrase("maxmemory-policy %s, %s of %s used%s", "maxmemory-policy %s，已用 %s，上限 %s%s",
				n.EvictionPolicy, size(max(0, n.MemoryUsed)), size(n.MemoryMax), evicted)
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

func noEvictionYet(nodes []locksteward.NodeState) locksteward.Text {
	for _, n := range nodes {
		if n.EvictedKeys != 0 {
			return locksteward.Text{}
		}
	}
	return locksteward.Text{EN: "nothing was evicted so far", ZH: "目前尚未淘汰任何键"}
}
