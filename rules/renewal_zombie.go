package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// zombieFactor is how many times its expectation a renewed hold must last, and
// zombieRenewals how often it must have been renewed, to be called a zombie:
// work that takes twice as long as usual is slow, not dead.
const (
	zombieFactor   = 3
	zombieRenewals = 3
)

// renewalZombie reports holds that a watchdog keeps alive far past the time that
// their work should have taken.
type renewalZombie struct{}

var renewalZombieDoc = Doc{
	Name:     "renewal/zombie",
	Title:    "A lock is renewed on and on, far past its expected duration",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause:    message("renewal/zombie.cause"),
	Remedy:   message("renewal/zombie.remedy"),
}

// Doc implements [Rule].
func (renewalZombie) Doc() Doc { return renewalZombieDoc }

// Evaluate implements [Rule].
func (renewalZombie) Evaluate(in Input) Verdict {
	l := in.Lock
	expect := expectation(in)
	if expect <= 0 {
		return in.notApplicable(func() string {
			return fmt.Sprintf("no expectation: neither the holder's metadata nor class %q says how long a hold may last", in.Class.Name)
		})
	}
	renewals := renewalsOf(l)
	if renewals < zombieRenewals {
		return in.clear(func() string { return english(renewalsLine(l, renewals)) + ", too few to speak of a zombie" })
	}
	age := provenAge(l)
	if age.basis == locksteward.AgeNone {
		return in.notApplicable(because("its age is not known"))
	}
	if age.proven/zombieFactor <= expect {
		return in.clear(func() string {
			return fmt.Sprintf("held for %s, not more than %d times the expected %s", dur(age.proven), zombieFactor, dur(expect))
		})
	}
	if r := judgeRenewal(l, in.LibraryFacts, in.Now); r.late() {
		return in.clear(because("its renewal is late, so nothing keeps it alive for ever; renewal/failing judges that"))
	}
	if since, known := sinceProgress(l, in.Now); known && since <= expect {
		return in.clear(func() string { return english(progressLine(l, in.Now, expect)) + ": it is slow, not stuck" })
	}
	return in.fires(locksteward.Finding{
		Summary: message("renewal/zombie.summary", locksteward.LockName(l.Key), age.proven, expect, renewals),
		Evidence: join(
			ageLine(l, age),
			expectLine(in, expect),
			renewalsLine(l, renewals),
			renewingStill(in),
			stalledLine(l, in.Now, expect),
			holderLine(l.Holder),
			purposeLine(l),
			silentLine(l, in.Now),
			waitersLine(l),
		),
		CounterEvidence: join(
			minimumLine(l, age),
			progressUnknownLine(l),
			maxHoldLine(l, in.Now),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
		),
	})
}

// renewalsOf is how often the hold was renewed: the holder counts better than
// looks from outside do.
func renewalsOf(l *locksteward.Lock) int64 {
	seen := int64(l.History.Renewals)
	if l.Claim == nil {
		return seen
	}
	return max(seen, l.Claim.Renewals)
}

func renewalsLine(l *locksteward.Lock, n int64) locksteward.Message {
	times := message("count.times", n)
	if l.Claim != nil && l.Claim.Renewals == n {
		return message("renewal/zombie.renewals-by-holder", times)
	}
	return message("renewal/zombie.renewals-seen", times)
}

// renewingStill is renewedLine where the renewal can be judged.
func renewingStill(in Input) locksteward.Message {
	r := judgeRenewal(in.Lock, in.LibraryFacts, in.Now)
	if !r.onTime() {
		return locksteward.Message{}
	}
	return renewedLine(in, r)
}

// progressUnknownLine is the doubt about work that says nothing of itself.
func progressUnknownLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim != nil && !l.Claim.Progress.IsZero() {
		return locksteward.Message{}
	}
	return message("renewal/zombie.progress-unknown")
}

// maxHoldLine says when the holder gives up by itself.
func maxHoldLine(l *locksteward.Lock, now time.Time) locksteward.Message {
	if l.Claim == nil || l.Claim.MaxHold <= 0 || l.Claim.Acquired.IsZero() {
		return locksteward.Message{}
	}
	end := l.Claim.Acquired.Add(l.Claim.MaxHold)
	if !end.After(now) {
		return locksteward.Message{}
	}
	return message("renewal/zombie.max-hold", end.Sub(now), l.Claim.MaxHold)
}
