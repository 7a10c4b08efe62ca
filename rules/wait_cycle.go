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
			fmt.Sprintf("suggested victim: session %s, which holds lock %s%s: it has the least work to lose (the shortest hold, then the shortest wait)",
				locksteward.DisplayKey(victim.Session), locksteward.DisplayKey(victim.Holds), victimLine(victim.Holder)),
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
		keys = append(keys, locksteward.DisplayKey(m.Holds))
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
func cycleLines(c *Cycle, now time.Time) []string {
	var lines []string
	for i, m := range c.Members {
		if i == maxCycleLines {
			lines = append(lines, fmt.Sprintf("and %d more sessions", len(c.Members)-i))
			break
		}
		line := fmt.Sprintf("session %s holds lock %s%s%s and waits for lock %s",
			locksteward.DisplayKey(m.Session), locksteward.DisplayKey(m.Holds), onTarget(m.Target, m.DB), memberLine(m),
			locksteward.DisplayKey(m.Waits.Key))
		if m.Waits.Target != m.Target {
			line += onTarget(m.Waits.Target, m.Waits.DB)
		}
		if !m.Waits.Since.IsZero() {
			line += fmt.Sprintf(" since %s (%s)", at(m.Waits.Since), dur(max(0, now.Sub(m.Waits.Since))))
		}
		lines = append(lines, line)
	}
	return lines
}

func onTarget(target string, db int) string {
	if db != 0 {
		return fmt.Sprintf(" of %s (db %d)", target, db)
	}
	return " of " + target
}

// memberLine says since when and what for a member has its lock.
func memberLine(m CycleMember) string {
	var parts []string
	if m.Holder.App != "" {
		parts = append(parts, "app "+locksteward.DisplayKey(m.Holder.App))
	}
	if m.Holder.Host != "" {
		parts = append(parts, "host "+locksteward.DisplayKey(m.Holder.Host))
	}
	if !m.Acquired.IsZero() && !m.Inferred {
		parts = append(parts, "since "+at(m.Acquired))
	}
	if m.Purpose != "" {
		parts = append(parts, "purpose: "+locksteward.DisplayKey(m.Purpose))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func victimLine(h locksteward.Holder) string {
	var parts []string
	if h.Host != "" {
		parts = append(parts, "host "+locksteward.DisplayKey(h.Host))
	}
	if h.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", h.PID))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func cycleProofLine(c *Cycle) string {
	if !c.Proven {
		return ""
	}
	return "seen in two reads of the same holds and the same waits"
}

func cycleOnceLine(c *Cycle) string {
	if c.Proven {
		return ""
	}
	return "locks and waiters were read one after the other: until a second read sees the same, one of them may just have gone on"
}

func cycleInferredLine(c *Cycle) string {
	for _, m := range c.Members {
		if m.Inferred {
			return fmt.Sprintf("lock %s does not name its session itself: that %s has it is what another lock of that session said when it was taken",
				locksteward.DisplayKey(m.Holds), locksteward.DisplayKey(m.Session))
		}
	}
	return ""
}

func cycleCallsLine(c *Cycle) string {
	for _, m := range c.Members {
		if m.Calls > 1 {
			return fmt.Sprintf("%d calls of session %s wait at once: another part of it may still release the lock", m.Calls, locksteward.DisplayKey(m.Session))
		}
	}
	return ""
}
