package rules

import (
	"github.com/locksteward/locksteward"
)

// fewRenewals is how many inferred renewals still look like an application that
// extends by hand now and then.
const fewRenewals = 5

// minFailedRenewals is how many failed attempts make a pattern, if they are at
// least as many as the successful ones.
const minFailedRenewals = 3

// renewalFailing reports holders whose watchdog stopped or struggles: the lease
// will run out while they still work.
type renewalFailing struct{}

var renewalFailingDoc = Doc{
	Name:     "renewal/failing",
	Title:    "A lock's renewal is late or fails",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Cause:    message("renewal/failing.cause"),
	Remedy:   message("renewal/failing.remedy"),
}

// Doc implements [Rule].
func (renewalFailing) Doc() Doc { return renewalFailingDoc }

// Evaluate implements [Rule].
func (renewalFailing) Evaluate(in Input) Verdict {
	l := in.Lock
	r := judgeRenewal(l, in.LibraryFacts, in.Now)
	switch {
	case !r.known:
		return in.notApplicable(r.why)
	case r.late():
		return renewalLate(in, r)
	case l.Claim != nil && l.Claim.RenewFailures >= minFailedRenewals && l.Claim.RenewFailures >= l.Claim.Renewals:
		return renewalStruggles(in, r)
	default:
		return in.clear(func() string { return english(onTimeLine(in, r)) })
	}
}

func renewalLate(in Input, r renewal) Verdict {
	l, key := in.Lock, locksteward.LockName(in.Lock.Key)
	since := max(0, in.Now.Sub(r.last))
	f := locksteward.Finding{
		Summary: message("renewal/failing.summary-late", key, since, r.interval()),
		Evidence: join(
			renewedLine(in, r),
			message("renewal/failing.overdue", r.overdue, r.after),
			ttlLine(l),
			failuresLine(l),
			silentLine(l, in.Now),
			holderLine(l.Holder),
			waitersLine(l),
		),
		CounterEvidence: join(aliveLine(l, in.Now), handExtendedLine(l, r), sameThreadLine(l)),
	}
	if l.TTL != locksteward.NoExpiry {
		f.Summary = message("renewal/failing.summary-late-ttl", key, since, r.interval(), max(0, l.TTL))
	}
	return in.fires(f)
}

func renewalStruggles(in Input, r renewal) Verdict {
	l, c := in.Lock, in.Lock.Claim
	return in.fires(locksteward.Finding{
		Summary:  message("renewal/failing.summary-failures", locksteward.LockName(l.Key), c.RenewFailures, c.Renewals),
		Evidence: join(failuresLine(l), ttlLine(l), holderLine(l.Holder), waitersLine(l)),
		CounterEvidence: join(
			onTimeLine(in, r),
			aliveLine(l, in.Now),
		),
		Cause: message("renewal/failing.cause-failures"),
	})
}

// renewedLine says how the hold renews and when it last did.
func renewedLine(in Input, r renewal) locksteward.Message {
	ago := max(0, in.Now.Sub(r.last))
	if !r.inferred {
		return message("renewal/failing.renewed-by-holder", r.interval(), ago)
	}
	return message("renewal/failing.renewed-seen", r.interval(), message("count.renewals", in.Lock.History.Renewals), ago)
}

// onTimeLine is renewedLine of a hold whose renewal is not late.
func onTimeLine(in Input, r renewal) locksteward.Message {
	return message("renewal/failing.on-time", renewedLine(in, r))
}

// interval words the interval, with "about" where it was only seen from outside.
func (r renewal) interval() locksteward.Message {
	if r.inferred {
		return message("renewal/failing.interval-about", r.every)
	}
	return message("renewal/failing.interval", r.every)
}

func failuresLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim == nil || l.Claim.RenewFailures == 0 {
		return locksteward.Message{}
	}
	return message("renewal/failing.failures", l.Claim.RenewFailures, l.Claim.Renewals)
}

func handExtendedLine(l *locksteward.Lock, r renewal) locksteward.Message {
	if !r.inferred || l.History.Renewals >= fewRenewals {
		return locksteward.Message{}
	}
	return message("renewal/failing.hand-extended", message("count.renewals-were", l.History.Renewals))
}

// sameThreadLine is the doubt about tokens that name a thread and not a hold.
func sameThreadLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim != nil || l.Identity != locksteward.IdentityLineage {
		return locksteward.Message{}
	}
	return message("renewal/failing.same-thread")
}
