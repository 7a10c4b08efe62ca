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
	Cause:        message("server/flushed.cause"),
	Remedy:       message("server/flushed.remedy"),
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
		Summary:         message("server/flushed.summary", message("count.locks", int64(took)), nodesOf(events)),
		Evidence:        append(newest(events), message("server/flushed.taken", took)),
		CounterEvidence: join(message("server.may-be-released")),
	}
	if took < minFlushed {
		f.Severity = locksteward.SeverityInfo
	}
	return in.fires(f)
}

// addEvents adds what a watch learnt of the servers since the last sweep.
func (p *pass) addEvents(events []locksteward.ServerEvent) {
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
	p.judge(ScopeTarget, subject{target: p.target}, "", "", Input{Class: beyondLocks})
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
