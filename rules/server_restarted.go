package rules

import (
	"maps"
	"slices"

	"github.com/locksteward/locksteward"
)

// ServerRestarted is the name of the rule that finds restarts.
const ServerRestarted = "server/restarted"

// serverRestarted reports servers that were restarted lately, and the locks that they
// lost: one finding instead of one for each of them.
type serverRestarted struct{}

var serverRestartedDoc = Doc{
	Name:     ServerRestarted,
	Title:    "The server was restarted",
	Scope:    ScopeTarget,
	Since:    "0.1.0",
	Severity: locksteward.SeverityCritical,
	SeverityNote: "warning where more locks are left than lost, info for one or two lost beside others, which may have ended by themselves, " +
		"and where none is lost",
	Cause: locksteward.Text{
		EN: "Another server process answers than before, and it was started since: a planned restart, a crash, or the machine's end. What was not saved is gone: locks, metadata, heartbeats.",
		ZH: "应答的已是另一个服务器进程，且在上次查看之后才启动：计划内重启、崩溃或机器故障。未持久化的内容已丢失：锁、元数据、心跳。",
	},
	Remedy: locksteward.Text{
		EN: "Treat what the locks protect as written by two if locks were lost (server/not-durable tells whether they could be). Verdicts of death wait for one longest lease, so that live processes can show themselves.",
		ZH: "若有锁丢失，请按可能存在两个写入者处理其保护的资源（server/not-durable 说明是否可能丢失）。死亡判定会暂停一个最长租约，以便存活的进程重新出现。",
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
	f := locksteward.Finding{
		Severity: locksteward.SeverityInfo,
		Summary:  phrase("the server was restarted: %s", "服务器已重启：%s", nodesOf(events)),
		Evidence: append(newest(events), join(pauseLine(in), backLine(events))...),
	}
	lost, stood, keys := 0, 0, []string(nil)
	for _, e := range events {
		lost += e.Locks
		if e.Locks > 0 {
			stood += e.Stood
		}
		for _, key := range e.Keys {
			keys = append(keys, locksteward.MarkKey(key))
		}
	}
	if lost == 0 {
		return in.fires(f)
	}
	f.Severity = restartSeverity(lost, stood)
	f.Summary = phrase("the server was restarted and lost %s: %s", "服务器已重启，并丢失了 %s：%s",
		counted(int64(lost), "lock", "locks", "把锁"), nodesOf(events))
	left := locksteward.Text{EN: "no lock that was known before it is left", ZH: "此前已知的锁已无一存在"}
	if stood > 0 {
		left = phrase("%s known before it are left", "此前已知的锁中仍有 %s存在", counted(int64(stood), "lock", "locks", "把"))
	}
	f.Evidence = append(f.Evidence, join(startedLine(events),
		phrase("gone, though without TTL or with a lease that ended after the server was back: %s",
			"没有过期时间，或租约在服务器恢复之后才到期，但已不存在：%s", examples(keys, lost)),
		lostClassesLine(events), left)...)
	f.CounterEvidence = join(locksteward.Text{EN: "some of them may have been released meanwhile", ZH: "其中一部分可能已在此期间释放"})
	return in.fires(f)
}

// restartSeverity says how sure it is that a restart lost locks: one or two of many may
// have been released meanwhile, and all of them were not.
func restartSeverity(lost, stood int) locksteward.Severity {
	switch {
	case stood == 0, lost >= minFlushed && lost >= stood:
		return locksteward.SeverityCritical
	case lost >= minFlushed:
		return locksteward.SeverityWarning
	default:
		return locksteward.SeverityInfo
	}
}

// startedLine says since when the processes run that lost locks.
func startedLine(events []locksteward.ServerEvent) locksteward.Text {
	var parts []locksteward.Text
	for _, e := range events {
		if e.Locks > 0 && !e.Started.IsZero() && len(parts) < maxExamples {
			parts = append(parts, text("%s since %s", "%s 自 %s 起", locksteward.DisplayKey(e.Node), at(e.Started)))
		}
	}
	if len(parts) == 0 {
		return locksteward.Text{}
	}
	return phrase("another process answers (its run_id is another one), running: %s", "应答的是另一个进程（run_id 不同），运行时间：%s", list(parts))
}

// lostClassesLine counts the lost locks by class.
func lostClassesLine(events []locksteward.ServerEvent) locksteward.Text {
	classes := map[string]int{}
	for _, e := range events {
		for name, n := range e.Classes {
			classes[name] += n
		}
	}
	var parts []locksteward.Text
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		if len(parts) == maxExamples {
			parts = append(parts, text("%d more classes", "另有 %d 个 class", len(classes)-maxExamples))
			break
		}
		parts = append(parts, text("class %s: %d", "class %s：%d", locksteward.DisplayKey(name), classes[name]))
	}
	if len(parts) == 0 {
		return locksteward.Text{}
	}
	return phrase("lost by class: %s", "按 class 统计的丢失数量：%s", list(parts))
}
