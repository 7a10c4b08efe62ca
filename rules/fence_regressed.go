package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// fenceRegressed reports holds whose fence is not above all earlier ones: what
// the lock protects refuses the holder, or, where it did not see the larger one,
// no longer tells old from new.
type fenceRegressed struct{}

var fenceRegressedDoc = Doc{
	Name:     "fence/regressed",
	Title:    "A fence went backwards",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityCritical,
	Cause: locksteward.Text{
		EN: "The counter locksteward:fence:{n} was lost (a failover to a replica without it, a restart without persistence, FLUSHALL, DEL, eviction) while the server's clock is behind the time at which the larger fence was given.",
		ZH: "计数器 locksteward:fence:{n} 丢失（故障切换到没有它的副本、无持久化重启、FLUSHALL、DEL、内存淘汰），且服务器时钟落后于发放较大 fence 的时刻。",
	},
	Remedy: locksteward.Text{
		EN: "Set the server's clock right (NTP), and raise the counter above the largest fence: SET the key that the evidence names to it. " +
			"Until then what checks fences refuses the holders of that slot; do not switch the check off. Keep the counters: noeviction, persistence, and WAIT for what must survive a failover.",
		ZH: "校正服务器时钟（NTP），并把计数器提高到最大 fence 之上：将证据中指出的键 SET 为该值。" +
			"在此之前，校验 fence 的资源会拒绝该槽的持有者；请勿关闭校验。保护计数器：noeviction、持久化，对必须经受故障切换的写入使用 WAIT。",
	},
}

// Doc implements [Rule].
func (fenceRegressed) Doc() Doc { return fenceRegressedDoc }

// Evaluate implements [Rule].
func (fenceRegressed) Evaluate(in Input) Verdict {
	l := in.Lock
	id, fence := l.TokenDigest, l.Fence
	if l.Claim != nil {
		id, fence = l.Claim.ID, l.Claim.Fence
	}
	var d *locksteward.FenceDrop
	if in.Situation != nil && id != "" {
		d = in.Situation.Drops[id]
	}
	if d != nil && d.Key == l.Key && fence == 0 && l.Claim == nil {
		fence = d.Fence // the counter was not read this time
	}
	switch {
	case fence == 0:
		return in.notApplicable(because("the lock has no fence"))
	case d == nil || d.Key != l.Key:
		return in.clear(func() string { return fmt.Sprintf("fence %d is not known to be below an earlier one", fence) })
	case fence > d.Highest:
		return in.clear(func() string { return fmt.Sprintf("fence %d was raised above the earlier %d", fence, d.Highest) })
	}
	return in.fires(locksteward.Finding{
		Summary: text("fence of lock %s went backwards: %d after %d", "锁 %s 的 fence 倒退：先有 %[3]d，后有 %[2]d",
			locksteward.MarkKey(l.Key), fence, d.Highest),
		Evidence: append(join(
			text("this hold has fence %d; %d was given before it, and seen at %s, from the same counter",
				"本次持有的 fence 为 %d；同一计数器此前已发放 %d，并在 %s 被看到", fence, d.Highest, at(d.At)),
			counterLine(d),
			acquiredLine(l),
			holderLine(l.Holder),
		), suspectLines(in.Situation.suspects(d.At, in.Now))...),
		CounterEvidence: join(
			locksteward.Text{EN: "a resource that never saw the larger fence accepts this one", ZH: "从未见过较大 fence 的资源会接受这一个"},
		),
	})
}

func counterLine(d *locksteward.FenceDrop) locksteward.Text {
	if d.Counter == "" {
		return locksteward.Text{}
	}
	return text("the counter is the key %s", "计数器是键 %s", locksteward.MarkKey(d.Counter))
}

func acquiredLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim == nil {
		return locksteward.Text{}
	}
	return heldSinceLine(l)
}

// suspectLines lists what happened to the servers.
func suspectLines(events []locksteward.ServerEvent) []locksteward.Text {
	var out []locksteward.Text
	for _, e := range events {
		out = append(out, eventLine(e))
	}
	return out
}
