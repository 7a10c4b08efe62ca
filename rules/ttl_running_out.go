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
	Cause:    message("ttl/running-out.cause"),
	Remedy:   message("ttl/running-out.remedy"),
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
		return in.notApplicable(func() string { return english(renewalsLine(l, renewalsOf(l))) + " in this hold" })
	case mayRenewYet(l, in.Now):
		return in.notApplicable(func() string {
			return fmt.Sprintf("its library renews about every %s, and it was first seen only %s ago", dur(l.RenewEvery), dur(seenFor(l, in.Now)))
		})
	case l.TTL >= limit:
		return in.clear(func() string { return fmt.Sprintf("%s, at least %s", english(ttlLine(l)), dur(limit)) })
	}
	key := locksteward.LockName(l.Key)
	lease, line := leaseOf(l)
	return in.fires(locksteward.Finding{
		Summary: message("ttl/running-out.summary", key, max(0, l.TTL)),
		Evidence: join(
			ttlLine(l),
			message("ttl/running-out.limit", in.Class.Name, limit),
			message("ttl/running-out.never-renewed"),
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

func stillExpectedLine(in Input) locksteward.Message {
	end, expires := expectedEnd(in), in.Now.Add(in.Lock.TTL)
	if end.IsZero() || !end.After(expires) {
		return locksteward.Message{}
	}
	return message("ttl/running-out.ends-after-lock", end)
}

func doneByThenLine(in Input) locksteward.Message {
	end, expires := expectedEnd(in), in.Now.Add(in.Lock.TTL)
	if end.IsZero() || end.After(expires) || in.Now.After(end) {
		return locksteward.Message{}
	}
	return message("ttl/running-out.ends-before-lock", end)
}

func shortLeaseLine(lease, limit time.Duration) locksteward.Message {
	if lease > limit {
		return locksteward.Message{}
	}
	return message("ttl/running-out.short-lease", lease)
}

func fewLooksLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim != nil || l.History.Looks > 1 {
		return locksteward.Message{}
	}
	return message("ttl/running-out.few-looks")
}
