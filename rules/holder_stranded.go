package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// strandedAfter is for how long a session must be idle: a client that works sends its next
// statement sooner.
const strandedAfter = time.Minute

// holderStranded reports locks that an idle session keeps.
type holderStranded struct{}

var holderStrandedDoc = Doc{
	Name:         "holder/stranded",
	Title:        "An idle session holds a lock",
	Scope:        ScopeLock,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityWarning,
	SeverityNote: "info while nobody waits for the lock",
	Risk:         locksteward.RiskDeadlock,
	Cause:        message("holder/stranded.cause"),
	Remedy:       message("holder/stranded.remedy"),
}

// Doc implements [Rule].
func (holderStranded) Doc() Doc { return holderStrandedDoc }

// Evaluate implements [Rule].
func (holderStranded) Evaluate(in Input) Verdict {
	l := in.Lock
	if l.Lifetime != locksteward.LifetimeSession {
		return in.notApplicable(because("it does not end with a session"))
	}
	s := l.Session
	if s == nil || s.State == "" || s.StateSince.IsZero() {
		return in.notApplicable(because("what the session of its holder does is not known"))
	}
	idle := max(0, in.Now.Sub(s.StateSince))
	if s.State != locksteward.SessionIdle || idle < strandedAfter {
		return in.clear(func() string {
			return fmt.Sprintf("the session of its holder is %s for %s; it counts as stranded when it is idle for %s", s.State, dur(idle), dur(strandedAfter))
		})
	}
	severity := locksteward.SeverityInfo
	if l.Waiters > 0 {
		severity = locksteward.SeverityWarning
	}
	return in.fires(locksteward.Finding{
		Severity: severity,
		Summary:  message("holder/stranded.summary", locksteward.LockName(l.Key), idle),
		Evidence: join(
			message("holder/stranded.idle", locksteward.DisplayKey(s.ID), idle, s.StateSince),
			waitersLine(l),
			strandedLoginLine(s),
			strandedOthersLine(s),
			seenLine(l, in.Now),
			holderLine(l.Holder),
		),
		CounterEvidence: []locksteward.Message{message("holder/stranded.by-design")},
	})
}

// strandedLoginLine says whose session it is.
func strandedLoginLine(s *locksteward.Session) locksteward.Message {
	switch {
	case s.User == "" || s.Since.IsZero():
		return locksteward.Message{}
	case s.Addr == "":
		return message("holder/stranded.login", locksteward.DisplayKey(s.User), s.Since)
	}
	return message("holder/stranded.login-from", locksteward.DisplayKey(s.User), locksteward.DisplayKey(s.Addr), s.Since)
}

// strandedOthersLine names the locks that a release would end as well.
func strandedOthersLine(s *locksteward.Session) locksteward.Message {
	if len(s.Locks) == 0 {
		return locksteward.Message{}
	}
	return message("holder/stranded.others", locksLine(s.Locks[:min(len(s.Locks), maxExamples)], len(s.Locks)))
}
