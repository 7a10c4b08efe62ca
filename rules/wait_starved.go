package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// waitStarved reports locks for which somebody has waited too long.
type waitStarved struct{}

var waitStarvedDoc = Doc{
	Name:     "wait/starved",
	Title:    "Somebody waits too long for a lock",
	Scope:    ScopeWaiters,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "The holder keeps the lock for too long, more work queues up for one lock than it can serve, or others take it again and again before this one has its turn.",
		ZH: "持有者占用锁的时间过长，或排队等待同一把锁的任务超过其处理能力，或其他客户端反复抢先取得该锁。",
	},
	Remedy: locksteward.Text{
		EN: "If one holder keeps it, look at what that does (hold/too-long, wait/cycle). If it changes hands all the time, take it with Fair, so that each has its turn, " +
			"split the work over more locks, or hold it for less of the work. Bound the wait with Lease.Wait.",
		ZH: "若一直由同一个持有者占用，请查看其正在做什么（hold/too-long、wait/cycle）。若锁频繁易手，请用 Fair 加锁以保证先来先得，" +
			"或拆分为更多的锁，或缩短持有时间。用 Lease.Wait 限制等待时间。",
	},
}

// Doc implements [Rule].
func (waitStarved) Doc() Doc { return waitStarvedDoc }

// Evaluate implements [Rule].
func (waitStarved) Evaluate(in Input) Verdict {
	limit := in.Class.MaxWait
	if limit <= 0 {
		return in.notApplicable(func() string { return fmt.Sprintf("class %q has no max_wait", in.Class.Name) })
	}
	if len(in.Waiters) == 0 {
		return in.clear(because("nobody is known to wait for the lock"))
	}
	longest, starved := in.Waiters[0], 0
	for _, w := range in.Waiters {
		if waited(w, in.Now) > waited(longest, in.Now) {
			longest = w
		}
		if waited(w, in.Now) > limit {
			starved++
		}
	}
	most := waited(longest, in.Now)
	if starved == 0 {
		return in.clear(func() string {
			return fmt.Sprintf("%s, for %s at most, within the limit of %s", countWaits(len(in.Waiters)).EN, dur(most), dur(limit))
		})
	}
	return in.fires(locksteward.Finding{
		Summary: text("somebody has waited for lock %s for %s, longer than the limit of %s",
			"等待锁 %s 已达 %s，超过上限 %s", locksteward.MarkKey(longest.Key), dur(most), dur(limit)),
		Evidence: join(
			phrase("%s; %d longer than %s, as class %q allows", "%s在等待；其中 %d 个已超过 %s，即 class %q 允许的时间",
				countWaits(len(in.Waiters)), starved, dur(limit), in.Class.Name),
			phrase("the longest waits since %s%s", "等待最久的自 %s 起等待%s", at(longest.Since), whoWaits(longest)),
			holdLine(in.Lock),
			heldByLine(in.Lock),
		),
		CounterEvidence: join(turnoverLine(in.Lock, longest)),
	})
}

// waited is how long w has waited.
func waited(w locksteward.Waiter, now time.Time) time.Duration {
	if w.Since.IsZero() {
		return 0
	}
	return max(0, now.Sub(w.Since))
}

func countWaits(n int) locksteward.Text { return counted(n, "call waits", "calls wait", "个调用") }

func whoWaits(w locksteward.Waiter) locksteward.Text {
	var parts []locksteward.Text
	if w.Session != "" {
		parts = append(parts, sessionPart(w.Session))
	}
	if w.Instance != "" {
		parts = append(parts, instancePart(w.Instance))
	}
	if len(parts) == 0 {
		return locksteward.Text{}
	}
	return phrase(", %s", "，%s", list(parts))
}

// holdLine says for how long the present holder has had the lock.
func holdLine(l *locksteward.Lock) locksteward.Text {
	if l == nil {
		return locksteward.Text{EN: "nobody was seen to hold it", ZH: "未看到有人持有它"}
	}
	age, basis, minimum := l.Age()
	switch {
	case basis == locksteward.AgeNone:
		return locksteward.Text{}
	case minimum:
		return text("held for at least %s", "已被持有至少 %s", dur(age))
	default:
		return text("held for %s", "已被持有 %s", dur(age))
	}
}

func heldByLine(l *locksteward.Lock) locksteward.Text {
	if l == nil {
		return locksteward.Text{}
	}
	return holderLine(l.Holder)
}

// turnoverLine is the doubt that the lock is stuck: it has changed hands while
// this one waited.
func turnoverLine(l *locksteward.Lock, w locksteward.Waiter) locksteward.Text {
	if l == nil || l.Claim == nil || !l.Claim.Acquired.After(w.Since) {
		return locksteward.Text{}
	}
	return text("the lock changes hands: it was taken at %s, after this one began to wait", "锁在易手：它在 %s 被取得，晚于该调用开始等待的时间",
		at(l.Claim.Acquired))
}
