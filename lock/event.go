package lock

import "time"

// EventKind says what an [Event] is about.
type EventKind string

// Kinds of events.
const (
	EventAcquired       EventKind = "acquired"        // Took: how long it took
	EventHeld           EventKind = "held"            // gave up since another has it; Took: how long it waited
	EventAcquireFailed  EventKind = "acquire_failed"  // Err: why
	EventRenewed        EventKind = "renewed"         // Took: round trip
	EventRenewFailed    EventKind = "renew_failed"    // Err: why; will be tried again
	EventLost           EventKind = "lost"            // Took: how long it was held; Err: a *LostError
	EventReleased       EventKind = "released"        // Took: how long it was held
	EventReleaseUnknown EventKind = "release_unknown" // Err: why; goes on in the background
	EventCleaned        EventKind = "cleaned"         // a lock of unknown outcome is gone
	EventCleanFailed    EventKind = "clean_failed"    // given up at the lock's TTL; Err: last error
	EventBeatFailed     EventKind = "beat_failed"     // heartbeat not written; Err: why
	EventPushFailed     EventKind = "push_failed"     // wake-ups are down, polling goes on; Err: why
)

// Event is one thing that happened, for metrics and logs.
type Event struct {
	Kind  EventKind
	Key   string // lock; empty for heartbeat and push
	Class string
	ID    string // acquisition id
	Took  time.Duration
	Err   error
}
