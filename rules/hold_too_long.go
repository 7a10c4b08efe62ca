package rules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// HoldTooLong is the name of the rule about holds that last too long.
const HoldTooLong = "hold/too-long"

// holdTooLong reports locks that are held past the time they were meant for.
type holdTooLong struct{}

var holdTooLongDoc = Doc{
	Name:     HoldTooLong,
	Title:    "A lock is held past its expected duration",
	Scope:    ScopeLock,
	Since:    "0.1.0",
	Severity: locksteward.SeverityWarning,
	Risk:     locksteward.RiskDeadlock,
	Cause:    message("hold/too-long.cause"),
	Remedy:   message("hold/too-long.remedy"),
}

// holdTooLongBareRemedy is the advice where no TTL frees the lock.
var holdTooLongBareRemedy = message("hold/too-long.remedy-without-ttl")

// Doc implements [Rule].
func (holdTooLong) Doc() Doc { return holdTooLongDoc }

// Evaluate implements [Rule].
func (holdTooLong) Evaluate(in Input) Verdict {
	l := in.Lock
	expect := expectation(in)
	if expect <= 0 {
		return in.notApplicable(func() string {
			return fmt.Sprintf("no expectation: neither the holder's metadata nor class %q says how long a hold may last", in.Class.Name)
		})
	}
	age := provenAge(l)
	if age.basis == locksteward.AgeNone {
		return in.notApplicable(because("its age is not known"))
	}
	if age.proven <= expect {
		return in.clear(func() string {
			if age.shown > expect {
				return fmt.Sprintf("present for %s, but %s; one hold of more than %s is not proven", dur(age.shown), english(age.doubt()), dur(expect))
			}
			return fmt.Sprintf("held for %s (%s), expected %s", dur(age.shown), age.basis, dur(expect))
		})
	}
	var remedy locksteward.Message // else the usual one
	if l.NeverExpires() {
		remedy = holdTooLongBareRemedy
	}
	return in.fires(locksteward.Finding{
		Remedy:  remedy,
		Summary: message("hold/too-long.summary", locksteward.LockName(l.Key), age.proven, expect),
		Evidence: join(
			ageLine(l, age),
			writtenSeenLine(l, age),
			idleBefore(l, age),
			expectLine(in, expect),
			age.proof(),
			ttlLine(l),
			holderLine(l.Holder),
			purposeLine(l),
			stalledLine(l, in.Now, expect),
			silentLine(l, in.Now),
			waitersLine(l),
		),
		CounterEvidence: join(
			minimumLine(l, age),
			writtenDoubtLine(l),
			renewingLine(in),
			progressLine(l, in.Now, expect),
			aliveLine(l, in.Now),
			nameOnlyLine(l),
		),
	})
}

// expectation is how long the hold may last: the holder itself knows better than
// its class.
func expectation(in Input) time.Duration {
	if c := in.Lock.Claim; c != nil && c.Expect > 0 {
		return c.Expect
	}
	return in.Class.Expect
}

func expectLine(in Input, expect time.Duration) locksteward.Message {
	if c := in.Lock.Claim; c != nil && c.Expect > 0 {
		return message("hold/too-long.expected-by-holder", expect)
	}
	return message("hold/too-long.expected-by-class", expect, in.Class.Name)
}

// age is how long one and the same hold is proven to last, beside the age that
// screens show.
type age struct {
	shown  time.Duration
	proven time.Duration
	basis  locksteward.AgeBasis
	turnover
}

// turnover is what a constant token makes of an age. Its words are made where they
// are shown: most ages are of locks that nothing is wrong with.
type turnover int

const (
	turnoverSeen    turnover = iota // the token is not constant
	turnoverHidden                  // nothing tells one hold from the next
	turnoverRenewed                 // the expiry was set anew: that may have been the next hold
	turnoverNone                    // the expiry stood still: it is one hold
)

// provenAge is Lock.Age less what turnover could hide: under a constant token a
// release and a new acquisition between two looks leave the same bytes. Such a
// hold is proven only for as long as its expiry stood still.
func provenAge(l *locksteward.Lock) age {
	shown, basis, _ := l.Age()
	a := age{shown: shown, proven: shown, basis: basis}
	if !l.SharedToken || basis == locksteward.AgeClaimed || basis == locksteward.AgeNone {
		return a
	}
	switch {
	case l.TTL == locksteward.NoExpiry:
		a.proven, a.turnover = 0, turnoverHidden
	case l.History.LastRenewal.After(l.History.FirstSeen):
		a.proven, a.turnover = max(0, min(shown, l.At.Sub(l.History.LastRenewal))), turnoverRenewed
	default:
		a.turnover = turnoverNone
	}
	return a
}

// doubted says that a turnover may be hidden, so that proven is less than shown.
func (a age) doubted() bool { return a.turnover == turnoverHidden || a.turnover == turnoverRenewed }

// doubt is why proven is less than shown.
func (a age) doubt() locksteward.Message {
	switch a.turnover {
	case turnoverHidden:
		return message("hold/too-long.turnover-hidden")
	case turnoverRenewed:
		return message("hold/too-long.turnover-possible", a.proven)
	default:
		return locksteward.Message{}
	}
}

// proof is why proven is not less than shown, where that could be doubted.
func (a age) proof() locksteward.Message {
	if a.turnover != turnoverNone {
		return locksteward.Message{}
	}
	return message("hold/too-long.turnover-none")
}

func ageLine(l *locksteward.Lock, a age) locksteward.Message {
	switch {
	case a.basis != locksteward.AgeClaimed:
		return seenLine(l, l.At)
	case isWritten(l):
		return message("hold/too-long.acquired-by-value", l.Acquired)
	default:
		return message("hold/too-long.acquired-by-holder", l.Claim.Acquired)
	}
}

// isWritten says that an age of basis AgeClaimed is that of the lock's value.
func isWritten(l *locksteward.Lock) bool { return l.Claim == nil || l.Claim.Acquired.IsZero() }

// writtenSeenLine shows what was observed beside the time in the value.
func writtenSeenLine(l *locksteward.Lock, a age) locksteward.Message {
	if a.basis != locksteward.AgeClaimed || !isWritten(l) {
		return locksteward.Message{}
	}
	return seenLine(l, l.At)
}

// writtenDoubtLine shows a time in the value that the age does not count.
func writtenDoubtLine(l *locksteward.Lock) locksteward.Message {
	_, doubt := l.WrittenAge()
	if doubt.ID == "" {
		return locksteward.Message{}
	}
	return message("hold/too-long.written-doubt", l.Acquired, doubt)
}

// idleBefore is idleLine where the age rests on it.
func idleBefore(l *locksteward.Lock, a age) locksteward.Message {
	if a.basis != locksteward.AgeIdle {
		return locksteward.Message{}
	}
	return idleLine(l)
}

// minimumLine says what is uncertain about the age.
func minimumLine(l *locksteward.Lock, a age) locksteward.Message {
	switch {
	case a.basis == locksteward.AgeClaimed && isWritten(l):
		return message("hold/too-long.clock-of-holder")
	case a.basis == locksteward.AgeClaimed:
		return locksteward.Message{}
	case a.doubted():
		return message("hold/too-long.seen-but", a.shown, a.doubt())
	case l.Identity == locksteward.IdentityStrong || a.turnover == turnoverNone || l.History.Looks < 2:
		return locksteward.Message{}
	default:
		return message("hold/too-long.token-not-fresh")
	}
}

func purposeLine(l *locksteward.Lock) locksteward.Message {
	if l.Claim == nil || l.Claim.Purpose == "" {
		return locksteward.Message{}
	}
	return purposePart(l.Claim.Purpose)
}

func purposePart(purpose string) locksteward.Message {
	return message("hold/too-long.purpose", locksteward.DisplayKey(purpose))
}

// renewingLine is evidence that the holder's process runs: somebody renews.
func renewingLine(in Input) locksteward.Message {
	r := judgeRenewal(in.Lock, in.LibraryFacts, in.Now)
	if !r.onTime() {
		return locksteward.Message{}
	}
	return message("hold/too-long.renewing", onTimeLine(in, r))
}

// progressLine and stalledLine weigh the work's own heartbeat, which is apart
// from renewal; without one nothing is said.
func progressLine(l *locksteward.Lock, now time.Time, expect time.Duration) locksteward.Message {
	since, ok := sinceProgress(l, now)
	if !ok || since > expect {
		return locksteward.Message{}
	}
	return message("hold/too-long.progress", since)
}

func stalledLine(l *locksteward.Lock, now time.Time, expect time.Duration) locksteward.Message {
	since, ok := sinceProgress(l, now)
	if !ok || since <= expect {
		return locksteward.Message{}
	}
	return message("hold/too-long.stalled", since)
}

func sinceProgress(l *locksteward.Lock, now time.Time) (time.Duration, bool) {
	if l.Claim == nil || l.Claim.Progress.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(cmp.Or(l.Claim.Progress, now))), true
}
