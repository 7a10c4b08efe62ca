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
	Cause: locksteward.Text{
		EN: "The server keeps no log of its writes (appendonly no) and has no replica that could take over, or saving fails. Locks taken since the last snapshot, if there is any, are free after a restart while their holders work.",
		ZH: "服务器未记录写入日志（appendonly no），也没有可接管的副本，或持久化失败。重启后，自上次快照（若有）以来取得的锁会变为空闲，而其持有者仍在工作。",
	},
	Remedy: locksteward.Text{
		EN: "Switch on appendonly (with appendfsync always for a master of a Redlock), or add a replica with Sentinel or Cluster. If saving fails, look into the server's log: disk, permissions, fork. Fence what must never be written by two.",
		ZH: "开启 appendonly（Redlock 的主节点使用 appendfsync always），或通过 Sentinel、Cluster 增加副本。若持久化失败，请查看服务器日志：磁盘、权限、fork。对绝不能被两方写入的资源使用 fence。",
	},
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
		Summary:         phrase("the server may lose locks when it restarts: %s", "服务器重启时可能丢失锁：%s", addrs(bad)),
		Evidence:        nodeLines(bad, whyLost),
		CounterEvidence: join(snapshotsLine(bad)),
	})
}

// forgets says why a server may forget: at most two reasons.
func forgets(n locksteward.NodeState) []locksteward.Text {
	var out []locksteward.Text
	if !n.AOF && n.Replicas == 0 {
		out = append(out, locksteward.Text{EN: "appendonly is off and no replica is connected", ZH: "appendonly 未开启，且没有已连接的副本"})
	}
	if !n.LastSaveOK {
		out = append(out, locksteward.Text{EN: "the last snapshot or write to the log failed", ZH: "上次快照或日志写入失败"})
	}
	return out
}

func whyLost(n locksteward.NodeState) locksteward.Text {
	why := forgets(n)
	if len(why) == 1 {
		return why[0]
	}
	return phrase("%s; %s", "%s；%s", why[0], why[1])
}

func snapshotsLine(nodes []locksteward.NodeState) locksteward.Text {
	var newest locksteward.NodeState
	for _, n := range nodes {
		if n.LastSave.After(newest.LastSave) {
			newest = n
		}
	}
	if newest.LastSave.IsZero() || newest.ChangesUnsaved < 0 {
		return locksteward.Text{}
	}
	return phrase("%s names %s as the time of its last snapshot, or of its start; %s since", "%s 称其上次快照或启动的时间为 %s；此后有 %s",
		locksteward.DisplayKey(newest.Addr), at(newest.LastSave), counted(newest.ChangesUnsaved, "change", "changes", "次更改"))
}
