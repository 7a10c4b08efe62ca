package rules

import (
	"slices"

	"github.com/locksteward/locksteward"
)

// ServerFlushed is the name of the rule that finds flushes.
const ServerFlushed = "server/flushed"

// minFlushed is how many locks must be gone after a flush to put it down to that:
// one or two may have ended by themselves meanwhile, and then it was another
// database.
const minFlushed = 3

// serverFlushed reports flushes that took locks: one finding instead of one for
// each of them.
type serverFlushed struct{}

var serverFlushedDoc = Doc{
	Name:         ServerFlushed,
	Title:        "A flush took locks",
	Scope:        ScopeTarget,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "info for one or two locks, which may have ended by themselves",
	Cause: locksteward.Text{
		EN: "Somebody sent FLUSHALL, FLUSHDB or SWAPDB: a cache that is emptied and shares the database with locks, a test or a deployment on the wrong server, or a person. Every lock was free at once while its holder worked.",
		ZH: "有人执行了 FLUSHALL、FLUSHDB 或 SWAPDB：与锁共用数据库的缓存被清空、测试或部署连错了服务器，或人工操作。所有锁立即可被他人取得，而其持有者仍在工作。",
	},
	Remedy: locksteward.Text{
		EN: "Treat what the locks protect as written by two since then: holders that use our library learn of it at their next renewal, others do not. Keep locks in a database of their own, and take FLUSHALL, FLUSHDB and SWAPDB from applications by ACL.",
		ZH: "自那时起，请按可能存在两个写入者处理这些锁保护的资源：使用本库的持有者会在下次续期时得知，其他持有者则不会。将锁放在单独的数据库中，并通过 ACL 禁止应用执行 FLUSHALL、FLUSHDB 和 SWAPDB。",
	},
}

// Doc implements [Rule].
func (serverFlushed) Doc() Doc { return serverFlushedDoc }

// Evaluate implements [Rule].
func (serverFlushed) Evaluate(in Input) Verdict {
	if in.Situation == nil {
		return in.notApplicable(because(noSweep))
	}
	events := slices.DeleteFunc(in.Situation.happened(locksteward.ServerFlushed), func(e locksteward.ServerEvent) bool { return e.Locks == 0 })
	if len(events) == 0 {
		return in.clear(because("no flush of the target was seen lately that took locks"))
	}
	took := 0
	for _, e := range events {
		took += e.Locks
	}
	f := locksteward.Finding{
		Summary:         phrase("a flush took %s: %s", "清空操作带走了 %s：%s", counted(int64(took), "lock", "locks", "把锁"), nodesOf(events)),
		Evidence:        append(newest(events), text("none of the %d locks that stood before it stands any more", "此前存在的 %d 把锁已无一存在", took)),
		CounterEvidence: join(locksteward.Text{EN: "some of them may have been released meanwhile", ZH: "其中一部分可能已在此期间释放"}),
	}
	if took < minFlushed {
		f.Severity = locksteward.SeverityInfo
	}
	return in.fires(f)
}

// heard takes in what a watch was told of the servers since the last sweep.
func (p *pass) heard(events []locksteward.ServerEvent) {
	old := p.e.situations[p.target]
	if len(events) == 0 || old == nil {
		return
	}
	n := *old
	n.Events = slices.Clone(old.Events)
	for _, e := range events {
		i := slices.IndexFunc(n.Events, func(o locksteward.ServerEvent) bool {
			return o.Kind == e.Kind && o.Node == e.Node && o.After.Equal(e.After)
		})
		if i < 0 {
			n.Events = append(n.Events, e)
		} else {
			n.Events[i] = e
		}
	}
	p.e.situations[p.target] = &n
	p.beyond(ScopeTarget, subject{target: p.target}, "", Input{Now: p.at})
}

// taken is the fingerprint of the finding that a flush or a restart took the lock of l,
// and others; "" if none did.
func (p *pass) taken(l *locksteward.Loss) string {
	if l.How != locksteward.EndedDeleted {
		return ""
	}
	for _, e := range onNode(p.e.situations[p.target].suspects(lastGood(l), l.At), l.Node) {
		rule := ""
		switch {
		case e.Kind == locksteward.ServerFlushed && e.Locks >= minFlushed:
			rule = ServerFlushed
		case e.Kind == locksteward.ServerRestarted && e.Locks > 0:
			rule = ServerRestarted
		default:
			continue
		}
		if tr := p.e.table.find(subject{target: p.target}, rule, ""); tr != nil && explains(tr.outline()) {
			return tr.outline().Fingerprint()
		}
	}
	return ""
}
