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
	Cause: locksteward.Text{
		EN: "The server answers every write with an error: MISCONF, since it cannot save and is not to go on then (stop-writes-on-bgsave-error, or a log that it cannot write), or NOREPLICAS, since fewer replicas are in step with it than min-replicas-to-write asks for. No lock can be taken, renewed or released: leases run out under their holders.",
		ZH: "服务器对所有写命令返回错误：MISCONF（无法持久化，且被配置为此时停止写入：stop-writes-on-bgsave-error，或无法写入日志），或 NOREPLICAS（保持同步的副本少于 min-replicas-to-write 的要求）。锁无法加锁、续期或释放：租约会在持有期间到期。",
	},
	Remedy: locksteward.Text{
		EN: "MISCONF: look into the server's log (disk, permissions, fork) and mend what keeps it from saving. NOREPLICAS: bring the replicas back, or lower min-replicas-to-write if what is written may stand on fewer servers. Holders whose lease ran out meanwhile must stop (hold/lost).",
		ZH: "MISCONF：查看服务器日志（磁盘、权限、fork），修复导致持久化失败的问题。NOREPLICAS：恢复副本；若允许数据只写入更少的服务器，可调低 min-replicas-to-write。租约已在此期间到期的持有者必须停止（见 hold/lost）。",
	},
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
		Summary: phrase("the server takes no writes, so that no lock can be taken, renewed or released: %s",
			"服务器拒绝写入，锁无法加锁、续期或释放：%s", addrs(bad)),
		Evidence: nodeLines(bad, func(n locksteward.NodeState) locksteward.Text {
			why := refusalPart(n.Refusals[0])
			for _, r := range n.Refusals[1:] {
				why = phrase("%s; %s", "%s；%s", why, refusalPart(r))
			}
			return why
		}),
	})
}

// refusalPart says why writes are refused, and how many were.
func refusalPart(r locksteward.Refusal) locksteward.Text {
	why := text("%s since saving fails", "%s，因为持久化失败", r.Code)
	if r.Code == "NOREPLICAS" {
		why = phrase("%s since min-replicas-to-write asks for more than the %s in step", "%s，因为 min-replicas-to-write 要求多于目前保持同步的 %s",
			r.Code, counted(r.Replicas, "replica", "replicas", "个副本"))
	}
	if r.Count == 0 {
		return why
	}
	return phrase("%s, %s refused between %s and %s", "%s，%s在 %s 与 %s 之间被拒绝",
		why, counted(r.Count, "command", "commands", "条命令"), at(r.After), at(r.At))
}
