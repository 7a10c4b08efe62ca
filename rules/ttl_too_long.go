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
	Cause:    message("ttl/too-long.cause"),
	Remedy:   message("ttl/too-long.remedy"),
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
		return in.clear(func() string { return fmt.Sprintf("%s, within the limit of %s", english(ttlLine(l)), dur(limit)) })
	}
	key := locksteward.LockName(l.Key)
	return in.fires(locksteward.Finding{
		Summary: message("ttl/too-long.summary", key, lease, limit),
		Evidence: join(
			ttlLine(l),
			line(),
			message("class.limit", in.Class.Name, limit),
			unitLine(l, lease, limit),
			holderLine(l.Holder),
		),
		CounterEvidence: join(aliveLine(l, in.Now), nameOnlyLine(l)),
	})
}

// leaseOf returns the longest lease that is known of this hold, so that the
// finding does not go away merely because time passes, and where that is from.
func leaseOf(l *locksteward.Lock) (lease time.Duration, line func() locksteward.Message) {
	lease, line = l.TTL, func() locksteward.Message { return locksteward.Message{} }
	if end, ok := expireAt(l); ok && !leaseFrom(l).IsZero() {
		if seen := end.Sub(leaseFrom(l)); seen > lease {
			lease = seen
			line = func() locksteward.Message {
				return message("ttl/too-long.lease-seen", seen, leaseFrom(l))
			}
		}
	}
	if l.Claim != nil && l.Claim.TTL > lease {
		lease = l.Claim.TTL
		line = func() locksteward.Message {
			return message("ttl/too-long.lease-taken", lease)
		}
	}
	return lease, line
}

// unitLine points at a lease that looks like milliseconds given as seconds. Our
// own library takes durations, which have no unit to mix up.
func unitLine(l *locksteward.Lock, lease, limit time.Duration) locksteward.Message {
	if meant := lease / 1000; l.Claim == nil && meant >= time.Second && meant <= time.Hour && meant < limit {
		return message("ttl/too-long.unit", meant)
	}
	return locksteward.Message{}
}
