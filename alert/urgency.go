package alert

import "github.com/locksteward/locksteward"

// The urgencies of notifications. Those about firing findings are twice the severity, which
// leaves room in between.
const (
	urgencyNone     = 0 // resolved findings, and repeats
	urgencyWarning  = 2 * int(locksteward.SeverityWarning)
	urgencyDecision = urgencyWarning + 1 // somebody must decide before the request ends
	urgencyCritical = 2 * int(locksteward.SeverityCritical)
)

// urgencyOf is how urgent the notification about a finding is.
func urgencyOf(f locksteward.Finding) int {
	if f.Status != locksteward.StatusFiring {
		return urgencyNone
	}
	return 2 * int(f.Severity)
}

// urgency is how urgent a notification about an event of a release is.
func (n Notice) urgency() int {
	switch severity := releaseSeverity(n.Kind); {
	case n.Loud || severity == "critical":
		return urgencyCritical
	case needsDecision(n.Kind):
		return urgencyDecision
	case severity == "warning":
		return urgencyWarning
	default:
		return urgencyNone
	}
}
