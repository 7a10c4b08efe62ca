package rules

import "github.com/locksteward/locksteward"

// serverRestarted reports servers that were restarted lately.
type serverRestarted struct{}

var serverRestartedDoc = Doc{
	Name:     "server/restarted",
	Title:    "The server was restarted",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause: locksteward.Text{
		EN: "Another server process answers than before, and it was started since: a planned restart, a crash, or the machine's end. What was not saved is gone: locks, metadata, heartbeats.",
		ZH: "应答的已是另一个服务器进程，且在上次查看之后才启动：计划内重启、崩溃或机器故障。未持久化的内容已丢失：锁、元数据、心跳。",
	},
	Remedy: locksteward.Text{
		EN: "Treat what the locks protect as written by two if locks were lost (hold/lost, and server/not-durable tells whether they could be). Verdicts of death wait for one longest lease, so that live processes can show themselves.",
		ZH: "若有锁丢失，请按可能存在两个写入者处理其保护的资源（见 hold/lost；server/not-durable 说明是否可能丢失）。死亡判定会暂停一个最长租约，以便存活的进程重新出现。",
	},
}

// Doc implements [Rule].
func (serverRestarted) Doc() Doc { return serverRestartedDoc }

// Evaluate implements [Rule].
func (serverRestarted) Evaluate(in Input) Verdict {
	events := in.Situation.happened(locksteward.ServerRestarted)
	if in.Situation == nil {
		return in.notApplicable(because(noSweep))
	}
	if len(events) == 0 {
		return in.clear(because("no server of the target was seen to restart lately"))
	}
	return in.fires(locksteward.Finding{
		Summary:  phrase("the server was restarted: %s", "服务器已重启：%s", nodesOf(events)),
		Evidence: append(newest(events), join(pauseLine(in), backLine(events))...),
	})
}
