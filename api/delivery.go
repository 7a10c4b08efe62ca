package api

import "time"

// Delivery is one message to one receiver. What it says is not in it.
type Delivery struct {
	// ID is the webhook-id of the message, the same in every attempt.
	ID string `json:"id"`
	// Seq is its place in the order in which messages were written.
	Seq      int64  `json:"seq"`
	Receiver string `json:"receiver"`
	// Type is that of docs/webhook.md.
	Type    string `json:"type"`
	EventID string `json:"event_id"`
	// About is the fingerprint of the finding or the id of the request that it tells
	// of; what is about the same is told in its order.
	About  string `json:"about"`
	Target string `json:"target"`
	// State is "waiting", "delivered" or "dead": given up.
	State string `json:"state"`
	// Attempts counts those that were begun.
	Attempts int   `json:"attempts"`
	Bytes    int64 `json:"bytes"`
	// CreatedAt is when it was written, or replayed last. NextAt is when it is due, of
	// one that waits; DoneAt when it was delivered or given up. By the store's clock.
	CreatedAt time.Time `json:"created_at"`
	NextAt    time.Time `json:"next_at,omitzero"`
	DoneAt    time.Time `json:"done_at,omitzero"`
	// LastError is why the last attempt failed, or why it was given up.
	LastError string `json:"last_error"`
}

// Receiver is the state of one receiver.
type Receiver struct {
	Name string `json:"name"`
	// Configured is false for one that alert.receivers has no longer.
	Configured bool `json:"configured"`
	// Resting says that it takes nothing: one message at a time finds out whether that
	// is over, the next one not before RestsUntil.
	Resting    bool      `json:"resting"`
	RestsUntil time.Time `json:"rests_until,omitzero"`
	// Gone says that it answered 410 and is tried once an hour, until a reload or a test
	// that arrives; absent if not.
	Gone bool `json:"gone,omitempty"`
	// Failing is what the last attempt at a message that waits ended with; absent
	// while none has failed.
	Failing string `json:"failing,omitempty"`
	Waiting int64  `json:"waiting"`
	Dead    int64  `json:"dead"`
	// OldestMs is how long the oldest message that waits has been waiting.
	OldestMs int64 `json:"oldest_ms"`
}

// DeliveryList is the answer of GET /api/v1/deliveries, newest first.
type DeliveryList struct {
	Receivers  []Receiver `json:"receivers"`
	Deliveries []Delivery `json:"deliveries"`
	// Next is the `before` of the next page; absent on the last one.
	Next int64 `json:"next,omitempty"`
}

// Replayed is the answer of POST /api/v1/deliveries/{id}/replay and
// /api/v1/receivers/{name}/replay.
type Replayed struct {
	Replayed int64 `json:"replayed"`
}

// ReceiverTest is the answer of POST /api/v1/receivers/{name}/test.
type ReceiverTest struct {
	Receiver  string `json:"receiver"`
	Delivered bool   `json:"delivered"`
	// Status is what the receiver answered; 0 if it did not.
	Status int `json:"status"`
	// Reason is "ok", or why not, in the words of locksteward_deliveries_total.
	Reason     string `json:"reason"`
	Error      string `json:"error,omitempty"`
	DurationMs int64  `json:"duration_ms"`
}
