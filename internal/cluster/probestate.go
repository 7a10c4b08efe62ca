package cluster

import "time"

const (
	// unreachableAfter and reachableAfter are how many probes in a row must fail, or succeed, to change whether a target
	// counts as reachable.
	unreachableAfter, reachableAfter = 2, 2
	// probeInterval is the time between the starts of two probes, and retryInterval that after a failed one. A probe that
	// takes longer is followed by the next one at once.
	probeInterval, retryInterval = time.Second, 500 * time.Millisecond
	// slowAfter is after how many equal results replicas that do not work on the target probe it only every
	// slowInterval: each of them connects.
	slowAfter    = 10
	slowInterval = 5 * time.Second
)

// probeState is what a replica knows of its own network path to a target.
type probeState struct {
	failures, successes int // in a row
	unreachable         bool
	// reachableElsewhere is since when another replica reports that it reaches the target. Zero: none does.
	reachableElsewhere time.Time
	// confirmed reports that the target was unreachable in a probe that started after that: of a server that was down and
	// is back, another replica may learn first.
	confirmed bool
}

// record applies the result of a probe that started at start. Reason is why it failed, "" if it did not.
func (s *probeState) record(reason string, start time.Time) {
	if reason == "" {
		s.failures, s.successes, s.confirmed = 0, s.successes+1, false
		s.unreachable = s.unreachable && s.successes < reachableAfter
		return
	}
	s.failures, s.successes = s.failures+1, 0
	s.unreachable = s.unreachable || s.failures >= unreachableAfter
	s.confirmed = s.unreachable && !s.reachableElsewhere.IsZero() && !start.Before(s.reachableElsewhere)
}

// setReachableElsewhere records whether another replica reports at now that it reaches the target. It returns true if the
// target is to be probed once more at once.
func (s *probeState) setReachableElsewhere(reachable bool, now time.Time) bool {
	switch {
	case !reachable:
		s.reachableElsewhere, s.confirmed = time.Time{}, false
	case s.reachableElsewhere.IsZero():
		s.reachableElsewhere = now
		return s.unreachable
	}
	return false
}

func (s *probeState) reachable() bool { return !s.unreachable && s.successes > 0 }

// interval is the time from the start of the last probe to that of the next. Own reports that this replica works on the
// target.
func (s *probeState) interval(own bool) time.Duration {
	switch {
	case !own && max(s.failures, s.successes) >= slowAfter:
		return slowInterval
	case s.failures > 0 && s.failures < slowAfter:
		return retryInterval
	default:
		return probeInterval
	}
}
