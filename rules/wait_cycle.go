package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// WaitCycle is the id of the rule whose pending findings are worth a second look
// at once: two reads of the same holds and waits prove a deadlock.
const WaitCycle = "wait/cycle"

// Cycle is a round of sessions, each of which waits for a lock that the next one
// has, in their order.
type Cycle struct {
	Members []CycleMember
	// Victim is the index of the member whose end is suggested.
	Victim int
	// Proven says that two reads saw the same holds and waits, with a moment at
	// which all of them were there.
	Proven bool
}

// CycleMember is one session of a [Cycle].
type CycleMember struct {
	Session string
	// Waits is its call that waits; Holds, HeldClass, Claim, Acquired, Purpose
	// and Holder are the hold of its own that the member before it waits for.
	Waits     locksteward.Waiter
	Target    string
	DB        int
	Holds     string // key, exact bytes
	HeldClass string
	Claim     string
	Acquired  time.Time // zero: not known
	Purpose   string
	Holder    locksteward.Holder
	// Inferred says that only another lock of the session tells that it has this
	// one.
	Inferred bool
	// Calls is how many calls of the session wait: others of it may go on.
	Calls int
}

// waitCycle reports deadlocks: sessions that wait for each other.
type waitCycle struct{}

var waitCycleDoc = Doc{
	Name:         WaitCycle,
	Title:        "Sessions wait for each other's locks",
	Scope:        ScopeCycle,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "warning where one of the locks does not name its session itself",
	Risk:         locksteward.RiskDeadlock,
	Cause: locksteward.Text{
		EN: "Two pieces of code take the same locks in different orders, and each got its first lock before the other. None of them can go on until one gives up: " +
			"renewal keeps the locks alive for as long as they wait.",
		ZH: "两段代码以不同的顺序获取相同的锁，且各自先取得了第一把锁。在其中一方放弃之前，谁都无法继续：等待期间续期会一直保持这些锁有效。",
	},
	Remedy: locksteward.Text{
		EN: "End the suggested victim (cancel its context, or end its process), or request a release of its lock: the others then go on. " +
			"Take locks in one order everywhere (by name, for instance), or bound the wait with Lease.Wait and give up what is held when it ends.",
		ZH: "结束建议的牺牲者（取消其 context 或结束其进程），或申请释放其持有的锁，其余会话即可继续。" +
			"各处应以同一顺序加锁（例如按名称排序），或用 Lease.Wait 限制等待时间，超时后放弃已持有的锁。",
	},
}

// Doc implements [Rule].
func (waitCycle) Doc() Doc { return waitCycleDoc }

// Evaluate implements [Rule].
func (waitCycle) Evaluate(in Input) Verdict {
	c := in.Cycle
	if c == nil || len(c.Members) == 0 {
		return in.notApplicable(because("no session that waits for this lock, or holds it, is in a cycle"))
	}
	victim := c.Members[c.Victim]
	f := locksteward.Finding{
		Summary: cycleSummary(c),
		Evidence: join(append(cycleLines(c, in.Now),
			cycleProofLine(c),
			phrase("suggested victim: session %s, which holds lock %s%s: it has the least work to lose (the shortest hold, then the shortest wait)",
				"建议的牺牲者：会话 %s，它持有锁 %s%s：其损失的工作最少（持有时间最短，其次等待时间最短）",
				locksteward.DisplayKey(victim.Session), locksteward.MarkKey(victim.Holds), victimAside(victim.Holder)),
		)...),
		CounterEvidence: join(cycleOnceLine(c), cycleInferredLine(c), cycleCallsLine(c)),
	}
	for _, m := range c.Members {
		if m.Inferred {
			f.Severity = locksteward.SeverityWarning
		}
	}
	return in.fires(f)
}

func cycleSummary(c *Cycle) locksteward.Text {
	var keys []string
	for _, m := range c.Members {
		keys = append(keys, locksteward.MarkKey(m.Holds))
	}
	if len(keys) == 1 {
		return text("deadlock: the session that holds lock %s waits for it itself", "死锁：持有锁 %s 的会话正在等待它自己", keys[0])
	}
	en, zh := strings.Join(keys[:min(len(keys), maxExamples)], ", "), strings.Join(keys[:min(len(keys), maxExamples)], "、")
	if more := len(keys) - maxExamples; more > 0 {
		en, zh = fmt.Sprintf("%s and %d more", en, more), fmt.Sprintf("%s 等 %d 把", zh, len(keys))
	}
	return locksteward.Text{
		EN: fmt.Sprintf("deadlock: %d sessions wait for each other's locks: %s", len(keys), en),
		ZH: fmt.Sprintf("死锁：%d 个会话互相等待对方的锁：%s", len(keys), zh),
	}
}

// maxCycleLines bounds the evidence: a round may have hundreds of members.
const maxCycleLines = 20

// cycleLines has one line for each member.
func cycleLines(c *Cycle, now time.Time) []locksteward.Text {
	var lines []locksteward.Text
	for i, m := range c.Members {
		if i == maxCycleLines {
			lines = append(lines, text("and %d more sessions", "另有 %d 个会话", len(c.Members)-i))
			break
		}
		var elsewhere, since locksteward.Text
		if m.Waits.Target != m.Target {
			elsewhere = onTarget(m.Waits.Target, m.Waits.DB)
		}
		if !m.Waits.Since.IsZero() {
			since = text(" since %s (%s)", "，始于 %s（已等待 %s）", at(m.Waits.Since), dur(max(0, now.Sub(m.Waits.Since))))
		}
		lines = append(lines, phrase("session %[1]s holds lock %[3]s%[2]s%[4]s and waits for lock %[6]s%[5]s%[7]s",
			"会话 %[1]s 持有%[2]s锁 %[3]s%[4]s，正在等待%[5]s锁 %[6]s%[7]s",
			locksteward.DisplayKey(m.Session), onTarget(m.Target, m.DB), locksteward.MarkKey(m.Holds), memberAside(m),
			elsewhere, locksteward.MarkKey(m.Waits.Key), since))
	}
	return lines
}

// onTarget stands behind the lock in English, and before it in Chinese.
func onTarget(target string, db int) locksteward.Text {
	if db != 0 {
		return text(" of %s (db %d)", "目标 %s（db %d）上的", target, db)
	}
	return text(" of %s", "目标 %s 上的", target)
}

// memberAside says since when and what for a member has its lock.
func memberAside(m CycleMember) locksteward.Text {
	parts := named(m.Holder.App, m.Holder.Host)
	if !m.Acquired.IsZero() && !m.Inferred {
		parts = append(parts, text("since %s", "自 %s 起", at(m.Acquired)))
	}
	if m.Purpose != "" {
		parts = append(parts, purposePart(m.Purpose))
	}
	return aside(parts)
}

func victimAside(h locksteward.Holder) locksteward.Text {
	parts := named("", h.Host)
	if h.PID != 0 {
		parts = append(parts, text("pid %d", "pid %d", h.PID))
	}
	return aside(parts)
}

func cycleProofLine(c *Cycle) locksteward.Text {
	if !c.Proven {
		return locksteward.Text{}
	}
	return locksteward.Text{EN: "seen in two reads of the same holds and the same waits", ZH: "两次读取都看到相同的持有与相同的等待"}
}

func cycleOnceLine(c *Cycle) locksteward.Text {
	if c.Proven {
		return locksteward.Text{}
	}
	return locksteward.Text{
		EN: "locks and waiters were read one after the other: until a second read sees the same, one of them may just have gone on",
		ZH: "锁与等待者是先后读取的：在第二次读取看到相同情形之前，其中某一方可能刚好已继续执行",
	}
}

func cycleInferredLine(c *Cycle) locksteward.Text {
	for _, m := range c.Members {
		if m.Inferred {
			return text("lock %s does not name its session itself: that %s has it is what another lock of that session said when it was taken",
				"锁 %s 自身未写明会话：由 %s 持有，是该会话的另一把锁在加锁时所写",
				locksteward.MarkKey(m.Holds), locksteward.DisplayKey(m.Session))
		}
	}
	return locksteward.Text{}
}

func cycleCallsLine(c *Cycle) locksteward.Text {
	for _, m := range c.Members {
		if m.Calls > 1 {
			return text("%d calls of session %s wait at once: another part of it may still release the lock",
				"会话 %[2]s 有 %[1]d 个调用同时在等待：其另一部分仍可能释放该锁", m.Calls, locksteward.DisplayKey(m.Session))
		}
	}
	return locksteward.Text{}
}
