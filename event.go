package locksteward

import "time"

// EventKind is a kind of [Event].
type EventKind string

// The kinds of events.
const (
	EventRequested    EventKind = "release.requested"     // a request waits for a decision
	EventReminder     EventKind = "release.reminder"      // a request expires soon, undecided
	EventSelfApproved EventKind = "release.self_approved" // by self_approval: alert
	EventAuto         EventKind = "release.auto"          // approved without a person
	EventBreakGlass   EventKind = "release.break_glass"   // one person, past the class's rules
	EventFinal        EventKind = "release.final"         // the request has a final state
	EventUnknown      EventKind = "release.unknown"       // its final state is unknown
	EventResurrected  EventKind = "release.resurrected"   // the old holder wrote the key again
	EventPaused       EventKind = "release.paused"        // releases were paused or resumed
	EventBreaker      EventKind = "release.breaker"       // many locks look dead at once
)

// Event is something about releases that people are notified of. It is written in the transaction of the audit entry
// that it belongs to, so that it is neither lost nor sent twice. It holds no token.
type Event struct {
	// ID is the same in every process and every retry.
	ID      string
	Kind    EventKind
	At      time.Time // agent's clock
	Actor   string
	Target  string
	Request Request // as it is after the event; zero for an event about no request
	Message Message // one sentence
	// Loud events cannot be silenced, muted or left out.
	Loud bool
}
