package rules

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// holdLost reports holds of our own library that ended without a release.
type holdLost struct{}

var holdLostDoc = Doc{
	Name:         "hold/lost",
	Title:        "A lock ended without a release",
	Scope:        ScopeLoss,
	Since:        "0.1.0",
	Severity:     locksteward.SeverityCritical,
	SeverityNote: "info while the holder's process has sent no heartbeat since, or is gone: the lease did its work",
	Cause:        message("hold/lost.cause"),
	Remedy:       message("hold/lost.remedy"),
}

// holdLostSilentRemedy is the advice while it is open who could still write.
var holdLostSilentRemedy = message("hold/lost.remedy-silent")

// holdLostGoneRemedy is the advice when nobody is left who could still write.
var holdLostGoneRemedy = message("hold/lost.remedy-gone")

// holdLostCauses are the usual causes of each way to lose a lock.
var holdLostCauses = map[locksteward.EndedHow]locksteward.Message{
	locksteward.EndedExpired:  message("hold/lost.cause-expired"),
	locksteward.EndedDeleted:  message("hold/lost.cause-deleted"),
	locksteward.EndedReplaced: message("hold/lost.cause-replaced"),
}

// holdLostServerCause is the cause of an early end where something happened to
// the server meanwhile.
var holdLostServerCause = message("hold/lost.cause-server")

// holdLostClockCause is the cause of a lease that ran out where the server's clock
// jumped forward meanwhile.
var holdLostClockCause = message("hold/lost.cause-clock")

// holdLostHow words the ways to lose a lock for a summary.
var holdLostHow = map[locksteward.EndedHow]locksteward.Message{
	locksteward.EndedExpired:  message("hold/lost.how-expired"),
	locksteward.EndedDeleted:  message("hold/lost.how-deleted"),
	locksteward.EndedReplaced: message("hold/lost.how-replaced"),
}

// holdLostEvents words an early end where something happened to the server
// meanwhile: then nobody need have deleted it.
var holdLostEvents = map[locksteward.ServerEventKind]locksteward.Message{
	locksteward.ServerFailedOver: message("hold/lost.how-failover"),
	locksteward.ServerRestarted:  message("hold/lost.how-restart"),
	locksteward.ServerFlushed:    message("hold/lost.how-flush"),
	locksteward.ServerEvicted:    message("hold/lost.how-evicted"),
}

// worst is the kind of event that explains most.
func worst(events []locksteward.ServerEvent) locksteward.ServerEventKind {
	for _, kind := range []locksteward.ServerEventKind{
		locksteward.ServerFailedOver, locksteward.ServerRestarted, locksteward.ServerFlushed, locksteward.ServerEvicted,
	} {
		if slices.ContainsFunc(events, func(e locksteward.ServerEvent) bool { return e.Kind == kind }) {
			return kind
		}
	}
	return ""
}

// jumpedForward says that e ended leases early.
func jumpedForward(e locksteward.ServerEvent) bool {
	return e.Kind == locksteward.ServerClockStepped && e.Step > 0
}

// originOf is how and when a stored finding says that a hold was lost, by its first
// evidence; zero if another version worded it.
func originOf(f locksteward.Finding) lossOrigin {
	if len(f.Evidence) == 0 {
		return lossOrigin{}
	}
	for how, m := range holdLostHow {
		if f.Evidence[0].ID == m.ID {
			return lossOrigin{how: how, at: f.Since}
		}
	}
	for _, m := range holdLostEvents {
		if f.Evidence[0].ID == m.ID {
			return lossOrigin{how: locksteward.EndedDeleted, at: f.Since}
		}
	}
	return lossOrigin{}
}

// Doc implements [Rule].
func (holdLost) Doc() Doc { return holdLostDoc }

// Evaluate implements [Rule].
func (holdLost) Evaluate(in Input) Verdict {
	s := in.Loss
	if s.How == locksteward.EndedLapsed {
		return in.clear(func() string { return "it was a hand-off that lapsed, see wait/handoff-lapsed" })
	}
	how, ok := holdLostHow[s.How]
	if !ok {
		how = message("hold/lost.how-unknown")
	}
	events := onNode(in.Situation.suspects(lastGood(s), s.At), s.Node)
	if known, ok := holdLostEvents[worst(events)]; ok && s.How == locksteward.EndedDeleted {
		how = known
	}
	f := locksteward.Finding{
		Severity: locksteward.SeverityInfo,
		Evidence: join(
			how,
			deadlineLine(s),
			heldLine(s),
			holderLine(s.Holder),
			fenceLine(s),
		),
		Cause: holdLostCauses[s.How],
	}
	if len(events) > 0 {
		f.Evidence = append(f.Evidence, newest(events)...)
		switch {
		case s.How != locksteward.EndedExpired && worst(events) != "":
			f.Cause = holdLostServerCause
		case s.How == locksteward.EndedExpired && slices.ContainsFunc(events, jumpedForward):
			f.Cause = holdLostClockCause
		}
	}
	key := locksteward.LockName(s.Key)
	switch lives, beat := holderLives(s); {
	case lives:
		f.Severity = locksteward.SeverityCritical
		f.Remedy = holdLostDoc.Remedy
		f.Summary = message("hold/lost.summary-lives", key, how)
		f.Evidence = append(f.Evidence, livesLine(s, beat))
		f.CounterEvidence = join(contextLine(s))
	case s.Instance != nil:
		f.Remedy = holdLostSilentRemedy
		f.Summary = message("hold/lost.summary-silent", key, how)
		f.Evidence = append(f.Evidence, lastBeatLine(beat))
		f.CounterEvidence = join(message("hold/lost.may-be-alive"))
	default:
		f.Remedy = holdLostGoneRemedy
		f.Summary = message("hold/lost.summary-gone", key, how)
		f.Evidence = append(f.Evidence, message("hold/lost.heartbeat-gone"))
	}
	return in.fires(f)
}

// lastGood is the last moment at which the hold is known to have stood.
func lastGood(s *locksteward.Loss) time.Time {
	if s.Claim.Renewed.After(s.Claim.Acquired) {
		return s.Claim.Renewed
	}
	return s.Claim.Acquired
}

// onNode are the events of the server that had the lock.
func onNode(events []locksteward.ServerEvent, node string) []locksteward.ServerEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e locksteward.ServerEvent) bool {
		return node != "" && e.Node != node && e.Was != node
	})
}

// holderLives says whether the holder's process has outlived its lock, and when
// its last heartbeat. A lease that had run out when the loss was found may
// have done just what a lease is for, so only a heartbeat after the deadline
// counts. A lock that was deleted or replaced before its deadline was lost
// through no failing of the holder, so a heartbeat that was not overdue then is
// enough. Both stay true once they are true, for as long as the process lives.
func holderLives(s *locksteward.Loss) (bool, time.Time) {
	if s.Instance == nil || s.Instance.Beat.IsZero() {
		return false, time.Time{}
	}
	beat := s.Instance.Beat
	if !s.Deadline.IsZero() && (s.How == locksteward.EndedExpired || s.How == locksteward.EndedReplaced && !s.At.Before(s.Deadline)) {
		return beat.After(s.Deadline), beat
	}
	return !beat.Before(s.At.Add(-aliveWithin)), beat
}

func livesLine(s *locksteward.Loss, beat time.Time) locksteward.Message {
	if s.How == locksteward.EndedExpired {
		return message("hold/lost.lives-past-lease", beat)
	}
	return message("hold/lost.lives", beat)
}

// contextLine says when the holder's own code learns of the loss, if it does.
func contextLine(s *locksteward.Loss) locksteward.Message {
	switch {
	case s.How == locksteward.EndedExpired:
		return message("hold/lost.context-ended")
	case s.Claim.RenewEvery > 0:
		return message("hold/lost.context-ends", s.Claim.RenewEvery)
	default:
		return locksteward.Message{}
	}
}

func lastBeatLine(beat time.Time) locksteward.Message {
	if beat.IsZero() {
		return message("hold/lost.last-beat-unknown")
	}
	return message("hold/lost.last-beat", beat)
}

func deadlineLine(s *locksteward.Loss) locksteward.Message {
	if s.Deadline.IsZero() {
		return message("hold/lost.found-at", s.At)
	}
	return message("hold/lost.deadline", s.Deadline, s.At)
}

func heldLine(s *locksteward.Loss) locksteward.Message {
	c := &s.Claim
	switch {
	case c.Acquired.IsZero():
		return locksteward.Message{}
	case c.RenewEvery <= 0:
		return message("hold/lost.held-without-renewal", c.Acquired)
	case c.Renewed.After(c.Acquired):
		return message("hold/lost.held-renewed", c.Acquired, c.RenewEvery, c.Renewed)
	default:
		return message("hold/lost.held-never-renewed", c.Acquired, c.RenewEvery)
	}
}

func fenceLine(s *locksteward.Loss) locksteward.Message {
	if s.Claim.Fence == 0 {
		return locksteward.Message{}
	}
	return message("hold/lost.fence", s.Claim.Fence)
}
