package locksteward

import "time"

// NotificationState is what became of a notification.
type NotificationState string

// The states of a notification.
const (
	// NotificationWaiting is to be sent, now or later.
	NotificationWaiting NotificationState = "waiting"
	// NotificationDelivered was accepted by its receiver.
	NotificationDelivered NotificationState = "delivered"
	// NotificationDead is a dead letter: it was given up and can be retried by a person.
	NotificationDead NotificationState = "dead"
)

// Notification is what one receiver is sent at once: an event, or several of a group.
type Notification struct {
	// ID depends on event and receiver alone and is the same in every attempt, so that
	// receivers recognise a copy. An ID that the outbox has is not taken in again.
	ID       string
	Receiver string
	// Ordering is the key of a group or the id of a request. Notifications with the same
	// one are sent one at a time, in the order of writing. Empty: any order.
	Ordering string
	// Urgency orders what is due, the highest first. What waits before a notification in
	// its Ordering becomes as urgent.
	Urgency int
	EventID string
	Target  string
	Body    []byte        // JSON of an alert.Payload
	Delay   time.Duration // how long the first attempt waits

	// The outbox sets all that follows; times are of its clock.
	Seq       int64 // the place in the order of writing, over all receivers
	State     NotificationState
	Attempts  int // begun, the one in flight included
	NextAt    time.Time
	CreatedAt time.Time
	DoneAt    time.Time
	LastError string
	Claim     string // the claim under which it is sent; empty: it is not claimed
}

// Backlog is what waits for one receiver or was given up.
type Backlog struct {
	Receiver string
	Waiting  int64         // notifications
	Dead     int64         // dead letters
	Oldest   time.Duration // how long the oldest has been waiting, or a group has been due
	Grouped  int64         // events that wait in groups
	Held     int64         // of Grouped: held back
	Groups   int64         // groups that are due now or later
}
