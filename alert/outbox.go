package alert

import (
	"context"
	"errors"
	"time"
)

// Message is what one receiver is told at once.
type Message struct {
	// ID is the webhook-id: of event and receiver alone, and so the same in every
	// attempt.
	ID       string
	Receiver string
	// Ordering is the key of a group or the id of a request: of messages with the same
	// one is in flight at a time, in the order in which they were written.
	Ordering string
	// Urgency is how soon it must arrive: of what is due, the more urgent is sent first.
	Urgency int
	EventID string
	Target  string
	// Body is the JSON of a [Payload].
	Body []byte

	// Attempts is how many were begun, the one under way included; CreatedAt is when
	// it was written. The outbox sets both, and Handle, which is its own.
	Attempts  int
	CreatedAt time.Time
	Handle    any
}

// ErrClaimLost is word about a message that another sender took meanwhile.
var ErrClaimLost = errors.New("another sender has the message")

// Outbox is what keeps messages until they are delivered. All times are its own.
type Outbox interface {
	Groups
	// Claim takes up to limit messages of a receiver that are due, for ttl: nobody
	// else gets them until then. Of each Ordering it gives the first that is not done:
	// first those with the most urgent of what waits of their Ordering, then the oldest.
	Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]Message, error)
	// NextDue is how long it is until a message may be claimed; false if none waits.
	NextDue(ctx context.Context, receiver string) (time.Duration, bool, error)
	// Delivered, Retry and Bury say what became of a claimed message: it arrived, it
	// is to be sent again after a time, it is given up. All return [ErrClaimLost].
	Delivered(ctx context.Context, m Message) error
	Retry(ctx context.Context, m Message, why error, after time.Duration) error
	Bury(ctx context.Context, m Message, why error) error
	// Hurry makes due at once what waits for a receiver and is not claimed.
	Hurry(ctx context.Context, receiver string) error
	// BuryAll gives up what waits for a receiver and is at least as old, and not
	// claimed. It returns how many messages that were.
	BuryAll(ctx context.Context, receiver string, age time.Duration, why error) (int64, error)
	// Backlogs is what waits and what was given up, for each receiver with some.
	Backlogs(ctx context.Context) ([]Backlog, error)
}

// Backlog is what waits for one receiver, or was given up.
type Backlog struct {
	Receiver string
	Waiting  int64
	Dead     int64
	Oldest   time.Duration // how long the oldest that waits has been waiting
	// Grouped is how many changes wait in groups to become messages, and Held how many
	// of them are held back.
	Grouped, Held int64
	// Groups is how many groups are told of, now or again.
	Groups int64
}
