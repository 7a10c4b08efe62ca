package alert

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

var sampleTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// found is a finding of the samples.
func found(key string, severity locksteward.Severity, status locksteward.Status) locksteward.Finding {
	f := locksteward.Finding{
		Rule: "ttl/none", Severity: severity, Risk: locksteward.RiskDeadlock, Status: status,
		Target: "redis", Class: "orders", Key: key, Library: "redsync",
		Summary: locksteward.Literal(key+" has no expiry", "锁 "+key+" 没有过期时间"),
		Evidence: []locksteward.Message{
			locksteward.Literal("PTTL is -1 in two looks", "两次查看 PTTL 均为 -1"),
			locksteward.Literal("app checkout, host web-7, pid 4711", "应用 checkout，主机 web-7，pid 4711"),
		},
		CounterEvidence: []locksteward.Message{locksteward.Literal("it was written 3s before the first look", "它在首次查看前 3s 被写入")},
		Cause:           locksteward.Literal("A crash between SETNX and EXPIRE.", "在 SETNX 与 EXPIRE 之间崩溃。"),
		Remedy:          locksteward.Literal("Request its release.", "申请释放这把锁。"),
		Team:            "checkout", RunbookURL: "https://wiki.example/locks",
		Since: sampleTime.Add(-2 * time.Minute), FiredAt: sampleTime.Add(-time.Minute),
	}
	if status == locksteward.StatusResolved {
		f.ResolvedAt = sampleTime
		f.Resolution = locksteward.Literal("the hold ended: the lock was released by request r-7", "持有已结束：锁已由申请 r-7 释放")
	}
	return f
}

func eventOf(f locksteward.Finding, seq uint64, lang string) PayloadFinding {
	return writer{lang: lang}.event(locksteward.FindingEvent{ID: fmt.Sprintf("e%d", seq), Number: seq, At: sampleTime, Finding: f})
}

// shownSamples are the messages of the golden files of all receivers that people read.
func shownSamples(lang string) map[string]Payload {
	to := writer{name: "ops", lang: lang, links: "https://locks.example", team: "platform", keyNames: KeyNamesFull}
	const firing, resolved = locksteward.StatusFiring, locksteward.StatusResolved
	group := func(firing int) *Group {
		return &Group{Key: "g1", Labels: map[string]string{"target": "redis", "class": "orders", "rule": "ttl/none"}, Firing: firing}
	}
	make := func(kind string, why Reasoning, g *Group, list ...locksteward.Finding) Payload {
		p := Payload{Version: PayloadVersion, Lang: lang, Type: kind, ID: "msg_1", Seq: 9, Timestamp: sampleTime, Status: "firing", Reason: why, Group: g}
		n := map[Count]int{}
		var order []Count
		for i, f := range list {
			p.Findings = append(p.Findings, eventOf(f, uint64(i+1), lang))
			c := Count{Rule: f.Rule, Target: f.Target, Class: f.Class, Severity: f.Severity.String(), Status: string(f.Status)}
			if n[c]++; n[c] == 1 {
				order = append(order, c)
			}
		}
		for _, c := range order {
			c.Findings = n[c]
			p.Counts = append(p.Counts, c)
		}
		to.complete(&p)
		return p
	}
	critical, warning := locksteward.SeverityCritical, locksteward.SeverityWarning
	down := locksteward.Finding{
		Rule: "server/failover", Severity: warning, Status: firing, Target: "cache", Team: "platform",
		Summary: locksteward.Literal("the master of cache changed", "cache 的主节点已切换"), Since: sampleTime,
	}
	out := map[string]Payload{
		"firing":   make("findings.firing", ReasonNews, group(1), found("lock:order:42", critical, firing)),
		"resolved": make("findings.resolved", ReasonNews, group(0), found("lock:order:42", critical, resolved)),
		"mixed": make("findings.firing", ReasonNews, group(2),
			found("lock:order:42", critical, firing), found("lock:order:43", warning, firing), found("lock:order:44", critical, resolved)),
		"repeat":      make("findings.firing", ReasonRepeat, group(2), found("lock:order:42", warning, firing), found("lock:order:43", warning, firing)),
		"digest":      make("findings.firing", ReasonDigest, nil, found("lock:order:42", critical, firing), down),
		"first_sweep": make("findings.first_sweep", ReasonFirstSweep, &Group{Key: "s", Labels: map[string]string{"target": "redis"}, Firing: 14}, found("lock:order:42", critical, firing)),
	}
	firstSweep := out["first_sweep"]
	firstSweep.Counts[0].Findings, firstSweep.Omitted, firstSweep.OmittedBy = 14, 13, map[string]int{"critical": 13}
	to.complete(&firstSweep)
	out["first_sweep"] = firstSweep
	asked := glass()
	asked.Kind, asked.Loud = "release.requested", false
	asked.Message = locksteward.NewMessage("release.requested", locksteward.NewMessage("word.release"))
	asked.EventID, asked.Request.Evidence.BreakGlass = "r-1/release.requested", false
	asked.Request.State, asked.Request.Outcome, asked.Request.FinishedAt = locksteward.RequestPending, "", time.Time{}
	asked.Request.Decisions, asked.Request.Evidence.Key = nil, "lock:order:42"
	for name, n := range map[string]Notice{"requested": asked, "break_glass": glass(), "breaker": {
		EventID: "b", Kind: "release.breaker", At: sampleTime, Actor: "agent", Target: "redis",
		Message: locksteward.NewMessage("release.breaker", 20, "redis", "5m0s"),
	}} {
		m, err := releaseNotification(to, n, 12)
		if err != nil {
			panic(err)
		}
		out[name] = decoded(m.Body)
	}
	m, err := testNotification(to, "ana", sampleTime, 14)
	if err != nil {
		panic(err)
	}
	out["test"] = decoded(m.Body)
	return out
}

func decoded(body []byte) Payload {
	var p Payload
	if err := json.Unmarshal(body, &p); err != nil {
		panic(err)
	}
	return p
}

func encoded(t *testing.T, p Payload) []byte {
	t.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
