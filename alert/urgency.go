package alert

import "github.com/locksteward/locksteward"

// How urgent messages are. Those about findings that fire are twice as urgent as their
// severity says, so that there is room in between.
const (
	urgencyNone     = 0 // about what is over, and repeats
	urgencyWarning  = 2 * int(locksteward.SeverityWarning)
	urgencyDecision = urgencyWarning + 1 // somebody must decide before the request ends
	urgencyCritical = 2 * int(locksteward.SeverityCritical)
)

// urgencyOf is how urgent the message about a finding is.
func urgencyOf(f locksteward.Finding) int {
	if f.Status != locksteward.StatusFiring {
		return urgencyNone
	}
	return 2 * int(f.Severity)
}

// urgency is how urgent a message about an event of a release is.
func (n Notice) urgency() int {
	switch severity := releaseSeverity(n.Kind); {
	case n.Loud || severity == "critical":
		return urgencyCritical
	case asks(n.Kind):
		return urgencyDecision
	case severity == "warning":
		return urgencyWarning
	default:
		return urgencyNone
	}
}
