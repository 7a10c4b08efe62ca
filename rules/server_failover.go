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
	Cause: locksteward.Text{
		EN: "A replica became the master: Sentinel or Cluster promoted it, or somebody did. Replication is asynchronous: locks, releases and renewals that it had not received are undone.",
		ZH: "副本已成为主节点：由 Sentinel、Cluster 或人工提升。复制是异步的：副本尚未收到的加锁、释放和续期都已失效。",
	},
	Remedy: locksteward.Text{
		EN: "Look at the locks that may be lost (see the evidence) and at others that were taken or released right before it: two may hold one, and a released one may stand again. What must never be written by two needs a fence. Verdicts of death wait for one longest lease, so that live processes can show themselves.",
		ZH: "检查可能已丢失的锁（见证据）以及在此之前刚被取得或释放的其他锁：可能有两个持有者，已释放的锁也可能重新出现。绝不能被两方写入的资源需要 fence。死亡判定会暂停一个最长租约，以便存活的进程重新出现。",
	},
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
		Summary:  phrase("another server took over: %s", "另一台服务器已接管：%s", nodesOf(events)),
		Evidence: append(newest(events), join(pauseLine(in))...),
	}
	lost, keys := 0, []string(nil)
	for _, e := range events {
		lost += e.Locks
		for _, key := range e.Keys {
			keys = append(keys, locksteward.MarkKey(key))
		}
	}
	if lost > 0 {
		f.Summary = phrase("another server took over, and %s may be lost: %s", "另一台服务器已接管，%s可能已丢失：%s",
			counted(int64(lost), "lock", "locks", "把锁"), nodesOf(events))
		f.Evidence = append(f.Evidence, phrase("held before it, before their expiry, and gone; that the new master ever had them is not proved: %s",
			"此前被持有、尚未到期、现已不存在，且无法证明新主节点曾有过：%s", examples(keys, lost)))
		f.CounterEvidence = join(locksteward.Text{
			EN: "some of them may have been released meanwhile", ZH: "其中一部分可能已在此期间释放",
		})
	}
	f.Evidence = append(f.Evidence, join(backLine(events))...)
	return in.fires(f)
}
