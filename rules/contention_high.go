package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// minAttempts is how many acquires a window must have before their failures are
// a rate.
const minAttempts = 20

// contentionHigh reports classes whose locks are often not to be had.
type contentionHigh struct{}

var contentionHighDoc = Doc{
	Name:     "contention/high",
	Title:    "Too many acquires of a class end without the lock",
	Scope:    ScopeActivity,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause: locksteward.Text{
		EN: "More work wants the same locks than they can serve: holds are too long, one lock guards too much, clients retry without a pause, or the server cannot be reached. " +
			"Where replicas race for a job that only one must do, failures are what is meant.",
		ZH: "争用同一批锁的任务超过其处理能力：持有时间过长、一把锁保护的范围过大、客户端不间断重试，或服务器不可达。若多个副本竞争一个只需执行一次的任务，则失败属于预期。",
	},
	Remedy: locksteward.Text{
		EN: "Hold the lock for less of the work, give each resource a lock of its own, and wait for a release (Acquire) instead of trying again in a loop. " +
			"If failures are meant, raise max_failures of the class; 1 is no limit.",
		ZH: "缩短持有时间，为每个资源使用独立的锁，并等待释放（Acquire）而不是循环重试。若失败属于预期，请调大其 class 的 max_failures；1 表示不限制。",
	},
}

// Doc implements [Rule].
func (contentionHigh) Doc() Doc { return contentionHighDoc }

// Evaluate implements [Rule].
func (contentionHigh) Evaluate(in Input) Verdict {
	a := in.Activity
	if a == nil {
		return in.notApplicable(because("no process told of acquires of this class: only our own library counts them"))
	}
	all := a.Acquired + a.Failed
	if all < minAttempts {
		return in.notApplicable(func() string {
			return fmt.Sprintf("%d acquires are too few for a rate, %d are asked for", all, minAttempts)
		})
	}
	limit, rate := in.Class.MaxFailuresOrDefault(), float64(a.Failed)/float64(all)
	if rate <= limit {
		return in.clear(func() string {
			return fmt.Sprintf("%d of %d acquires failed (%s), within the limit of %s", a.Failed, all, percent(rate), percent(limit))
		})
	}
	return in.fires(locksteward.Finding{
		Summary: text("class %s: %d of %d acquires ended without the lock (%s), above the limit of %s",
			"class %s：%d/%d 次加锁未成功（%s），超过上限 %s", locksteward.DisplayKey(in.Class.Name), a.Failed, all, percent(rate), percent(limit)),
		Evidence: join(
			phrase("counted by %s since %s, in their heartbeats", "自 %[2]s 起由 %[1]s在其心跳中计数",
				counted(a.Processes, "process", "processes", "个进程"), at(a.Since)),
			text("%d acquires found another holder first", "%d 次加锁首先遇到其他持有者", a.Contended),
			text("the limit of class %q is %s", "class %q 的上限为 %s", in.Class.Name, percent(limit)),
		),
		CounterEvidence: join(
			otherReasonsLine(a),
			locksteward.Text{EN: "replicas that race for work that one of them must do fail by design", ZH: "若多个副本竞争只需其中之一执行的任务，失败属于预期"},
		),
	})
}

// otherReasonsLine is the doubt that locks are in short supply at all.
func otherReasonsLine(a *Activity) locksteward.Text {
	if a.Contended >= a.Failed {
		return locksteward.Text{}
	}
	return text("at least %d failures had another reason than a holder (time out, an unreachable server, a canceled call)",
		"至少 %d 次失败并非由持有者造成（超时、服务器不可达、调用被取消）", a.Failed-a.Contended)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
