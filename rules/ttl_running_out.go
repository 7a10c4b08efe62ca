package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// ttlRunningOut reports leases that nobody renews and that are about to end.
type ttlRunningOut struct{}

var ttlRunningOutDoc = Doc{
	Name:     "ttl/running-out",
	Title:    "A lock that is not renewed is about to expire",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause: locksteward.Text{
		EN: "The work takes longer than usual, and its lock was taken with a fixed TTL that nothing renews: the work may outlive its lock, and another then works beside it.",
		ZH: "执行时间比平时长，而加锁时使用了固定的过期时间且没有续期：执行可能比锁活得更久，届时他人会与其并行。",
	},
	Remedy: locksteward.Text{
		EN: "Look whether the work will be done in time. Renew the lock while the work runs (a watchdog), or take it with a TTL above the longest hold, and let the work stop when its lock is lost. " +
			"If holds of this class may use up their lease, lower warn_ttl_below.",
		ZH: "查看执行能否及时完成。在执行期间续期（看门狗），或将过期时间设为大于最长持有时间，并在丢锁时停止执行。若该 class 的锁本来就可以用满租约，请调小 warn_ttl_below。",
	},
}

// Doc implements [Rule].
func (ttlRunningOut) Doc() Doc { return ttlRunningOutDoc }

// Evaluate implements [Rule].
func (ttlRunningOut) Evaluate(in Input) Verdict {
	l, limit := in.Lock, in.Class.WarnTTLBelow
	switch {
	case limit <= 0:
		return in.notApplicable(func() string { return fmt.Sprintf("class %q has no warn_ttl_below", in.Class.Name) })
	case l.TTL == locksteward.NoExpiry:
		return in.notApplicable(because("the lock has no TTL; ttl/none judges that"))
	case l.Claim != nil && l.Claim.RenewEvery > 0:
		return in.notApplicable(because("its holder renews, by its own word; renewal/failing judges that"))
	case renewalsOf(l) > 0:
		return in.notApplicable(func() string { return renewalsLine(l, renewalsOf(l)).EN + " in this hold" })
	case mayRenewYet(l, in.Now):
		return in.notApplicable(func() string {
			return fmt.Sprintf("its library renews about every %s, and it was first seen only %s ago", dur(l.RenewEvery), dur(seenFor(l, in.Now)))
		})
	case l.TTL >= limit:
		return in.clear(func() string { return fmt.Sprintf("%s, at least %s", ttlLine(l).EN, dur(limit)) })
	}
	key := locksteward.MarkKey(l.Key)
	lease, line := leaseOf(l)
	return in.fires(locksteward.Finding{
		Summary: text("lock %s runs out in %s and was never renewed: the work may outlive its lock",
			"锁 %s 将在 %s 后到期且从未续期：执行可能比锁活得更久", key, dur(max(0, l.TTL))),
		Evidence: join(
			ttlLine(l),
			text("class %q wants at least %s", "class %q 要求至少 %s", in.Class.Name, dur(limit)),
			locksteward.Text{EN: "never renewed in this hold", ZH: "本次持有期间从未续期"},
			line(),
			stillExpectedLine(in),
			holderLine(l.Holder),
			purposeLine(l),
			waitersLine(l),
		),
		CounterEvidence: join(
			shortLeaseLine(lease, limit),
			doneByThenLine(in),
			fewLooksLine(l),
			nameOnlyLine(l),
		),
	})
}

// mayRenewYet says that the library has a watchdog and that this hold was not
// seen for long enough to know that it does not use it.
func mayRenewYet(l *locksteward.Lock, now time.Time) bool {
	return l.Claim == nil && l.RenewEvery > 0 && seenFor(l, now) <= withJitter(l.RenewEvery)+renewSlack
}

// expectedEnd is when the work should be done, zero if that is not known.
func expectedEnd(in Input) time.Time {
	if expect := expectation(in); expect > 0 && in.Lock.Claim != nil && !in.Lock.Claim.Acquired.IsZero() {
		return in.Lock.Claim.Acquired.Add(expect)
	}
	return time.Time{}
}

func stillExpectedLine(in Input) locksteward.Text {
	end, expires := expectedEnd(in), in.Now.Add(in.Lock.TTL)
	if end.IsZero() || !end.After(expires) {
		return locksteward.Text{}
	}
	return text("the work is expected to end at %s, after the lock", "预计执行在 %s 结束，晚于锁到期", at(end))
}

func doneByThenLine(in Input) locksteward.Text {
	end, expires := expectedEnd(in), in.Now.Add(in.Lock.TTL)
	if end.IsZero() || end.After(expires) || in.Now.After(end) {
		return locksteward.Text{}
	}
	return text("the work is expected to end at %s, before the lock", "预计执行在 %s 结束，早于锁到期", at(end))
}

func shortLeaseLine(lease, limit time.Duration) locksteward.Text {
	if lease > limit {
		return locksteward.Text{}
	}
	return text("no more than %s of its lease was ever seen: warn_ttl_below may be above the whole lease",
		"看到的租约从未超过 %s：warn_ttl_below 可能大于整个租约", dur(lease))
}

func fewLooksLine(l *locksteward.Lock) locksteward.Text {
	if l.Claim != nil || l.History.Looks > 1 {
		return locksteward.Text{}
	}
	return locksteward.Text{EN: "seen in one look only: a renewal cannot have been seen yet", ZH: "只看到过一次：还不可能看到续期"}
}
