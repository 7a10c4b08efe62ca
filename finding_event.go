package locksteward

import "time"

// FindingEvent is a transition of a finding that receivers are notified of. It is written in
// the transaction of the finding.
type FindingEvent struct {
	// ID is unique. An event that is written again is not taken in again for a receiver
	// that has or had it.
	ID string
	// Number grows over all events, restarts included. Receivers see it.
	Number     uint64
	At         time.Time
	FirstSweep bool // found by the first sweep of its target
	Finding    Finding
	To         []Recipient

	// Seq is the event's place in the order of writing, which it shares with
	// notifications. The outbox sets it.
	Seq int64
}

// Recipient is the group in which one receiver is notified of an event. All events of
// a finding that wait for a receiver are in the group of the first of them, and the
// end of a finding is in the group of its beginning, so that they keep their order
// whatever labels change.
type Recipient struct {
	Receiver string
	Group    string        // its key, at most 512 bytes
	Wait     time.Duration // how long the first event of a quiet group waits for others
	Interval time.Duration // the least time between two notifications of the group
	Urgency  int           // of groups that are due, the one with the most urgent event comes first
	// Direct says that a notification outside of groups carries the event: it does not
	// wait, and only the receiver's delivery state is recorded.
	Direct bool
}

// DueGroup is a group of events that is due to become notifications.
type DueGroup struct {
	Group  string
	LastAt time.Time // the group's last notification; zero: none
	Now    time.Time // by the clock of the outbox
	// Waiting are the events, oldest first: those that are not held back, bounded, and
	// all of the same findings. More says that there are others.
	Waiting []PendingEvent
	More    bool
	// Firing is the number of findings that the receiver knows to fire. FiringEvents
	// are their last events, oldest first and bounded; only when nothing waits.
	Firing       int
	FiringEvents []FindingEvent
}

// PendingEvent is an event that waits in a group of one receiver.
type PendingEvent struct {
	FindingEvent
	Known bool   // the receiver knows the finding to fire
	Held  string // why it was held back before; "": it was not
}

// FlushedGroup is what becomes of a [DueGroup]. Events that are in none of Notified,
// Dropped and Held go on waiting, and the group stays due.
type FlushedGroup struct {
	Group    string
	Notified []int64          // Seq of events that notifications carry now
	Dropped  []int64          // Seq of events that nobody is notified of
	Held     map[int64]string // why events go on waiting, by Seq
	Sent     bool             // there is a notification: LastAt becomes now
	Next     time.Duration    // when the group is due again; < 0: when an event is written
}
