package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// ttlTooLong reports leases that free a dead holder's lock far too late.
type ttlTooLong struct{}

var ttlTooLongDoc = Doc{
	Name:     "ttl/too-long",
	Title:    "A lock's TTL is above its class's limit",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityInfo,
	Cause: locksteward.Text{
		EN: "Seconds and milliseconds mixed up (EX 30000 is more than eight hours), or a long TTL in place of renewal, so that slow work does not lose its lock.",
		ZH: "秒与毫秒混淆（EX 30000 超过八小时），或用很长的过期时间代替续期，以免执行缓慢时丢锁。",
	},
	Remedy: locksteward.Text{
		EN: "Take the lock with a TTL of a few times the usual hold and renew it while the work runs, so that a crash blocks others for seconds. " +
			"If so long a lease is meant, raise max_ttl of the class.",
		ZH: "将过期时间设为通常持有时间的几倍，并在执行期间续期，这样崩溃只会阻塞他人数秒。若确实需要这么长的租约，请调大其 class 的 max_ttl。",
	},
}

// Doc implements [Rule].
func (ttlTooLong) Doc() Doc { return ttlTooLongDoc }

// Evaluate implements [Rule].
func (ttlTooLong) Evaluate(in Input) Verdict {
	l, limit := in.Lock, in.Class.MaxTTLOrDefault()
	if l.TTL == locksteward.NoExpiry {
		return in.notApplicable(because("the lock has no TTL; ttl/none judges that"))
	}
	lease, line := leaseOf(l)
	if lease <= limit {
		return in.clear(func() string { return fmt.Sprintf("%s, within the limit of %s", ttlLine(l).EN, dur(limit)) })
	}
	key := locksteward.MarkKey(l.Key)
	return in.fires(locksteward.Finding{
		Summary: text("lock %s has a TTL of %s, above the limit of %s",
			"锁 %s 的过期时间为 %s，超过上限 %s", key, dur(lease), dur(limit)),
		Evidence: join(
			ttlLine(l),
			line(),
			text("the limit of class %q is %s", "class %q 的上限为 %s", in.Class.Name, dur(limit)),
			unitLine(l, lease, limit),
			holderLine(l.Holder),
		),
		CounterEvidence: join(aliveLine(l, in.Now), nameOnlyLine(l)),
	})
}

// leaseOf returns the longest lease that is known of this hold, so that the
// finding does not go away merely because time passes, and where that is from.
func leaseOf(l *locksteward.Lock) (lease time.Duration, line func() locksteward.Text) {
	lease, line = l.TTL, func() locksteward.Text { return locksteward.Text{} }
	if end, ok := expireAt(l); ok && !leaseFrom(l).IsZero() {
		if seen := end.Sub(leaseFrom(l)); seen > lease {
			lease = seen
			line = func() locksteward.Text {
				return text("%s was left of it at %s", "在 %[2]s 时还剩 %[1]s", dur(seen), at(leaseFrom(l)))
			}
		}
	}
	if l.Claim != nil && l.Claim.TTL > lease {
		lease = l.Claim.TTL
		line = func() locksteward.Text {
			return text("taken for %s, as the holder says", "据持有者所写，加锁时的租约为 %s", dur(lease))
		}
	}
	return lease, line
}

// unitLine points at a lease that looks like milliseconds given as seconds. Our
// own library takes durations, which have no unit to mix up.
func unitLine(l *locksteward.Lock, lease, limit time.Duration) locksteward.Text {
	if meant := lease / 1000; l.Claim == nil && meant >= time.Second && meant <= time.Hour && meant < limit {
		return text("a thousandth of it is %s: milliseconds may have been given as seconds", "其千分之一为 %s：可能把毫秒数当作秒数设置了", dur(meant))
	}
	return locksteward.Text{}
}
