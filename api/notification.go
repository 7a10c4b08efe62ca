package api

import "time"

// Notification is one notification to one receiver, without its text.
type Notification struct {
	// ID is the webhook-id of the notification, the same in every attempt.
	ID string `json:"id"`
	// Seq is its place in the order of writing.
	Seq      int64  `json:"seq"`
	Receiver string `json:"receiver"`
	// Type is that of docs/webhook.md.
	Type    string `json:"type"`
	EventID string `json:"event_id"`
	// About is the group or the request that it is about: those about the same are sent in
	// their order.
	About  string `json:"about"`
	Target string `json:"target"`
	// State is "waiting", "delivered" or "dead": given up.
	State string `json:"state"`
	// Attempts counts those that were begun.
	Attempts int   `json:"attempts"`
	Bytes    int64 `json:"bytes"`
	// CreatedAt is when it was written, or last made due by a retry of dead letters. NextAt
	// is when a waiting one is due; DoneAt when it was delivered or given up. By the
	// store's clock.
	CreatedAt time.Time `json:"created_at"`
	NextAt    time.Time `json:"next_at,omitzero"`
	DoneAt    time.Time `json:"done_at,omitzero"`
	// LastError is why the last attempt failed, or why it was given up.
	LastError string `json:"last_error"`
}

// Receiver is the state of one receiver.
type Receiver struct {
	Name string `json:"name"`
	// Configured is false for one that was removed from alert.receivers.
	Configured bool `json:"configured"`
	// CircuitOpen says that it accepts nothing: one notification at a time is tried, the
	// next one not before PausedUntil.
	CircuitOpen bool      `json:"circuit_open"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// Gone says that it answered 410 and is tried once an hour, until a reload or a test
	// that is delivered; absent if not.
	Gone bool `json:"gone,omitempty"`
	// Failing is the error of the last attempt at a waiting notification; absent while none
	// has failed.
	Failing string `json:"failing,omitempty"`
	Waiting int64  `json:"waiting"`
	Dead    int64  `json:"dead"`
	// OldestMs is how long the oldest waiting notification has been waiting.
	OldestMs int64 `json:"oldest_ms"`
}

// NotificationList is the answer of GET /api/v1/notifications, newest first.
type NotificationList struct {
	Receivers     []Receiver     `json:"receivers"`
	Notifications []Notification `json:"notifications"`
	// Next is the `before` of the next page; absent on the last one.
	Next int64 `json:"next,omitempty"`
}

// Retried is the answer of POST /api/v1/notifications/{id}/retry and
// /api/v1/receivers/{name}/retry.
type Retried struct {
	Retried int64 `json:"retried"`
}

// ReceiverTest is the answer of POST /api/v1/receivers/{name}/test.
type ReceiverTest struct {
	Receiver  string `json:"receiver"`
	Delivered bool   `json:"delivered"`
	// Status is what the receiver answered; 0 if it did not.
	Status int `json:"status"`
	// Reason is "ok", or why it failed: a reason of locksteward_notifications_total.
	Reason     string `json:"reason"`
	Error      string `json:"error,omitempty"`
	DurationMs int64  `json:"duration_ms"`
}
