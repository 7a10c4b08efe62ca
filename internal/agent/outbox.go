package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/store"
)

// outbox is the store as the sender of alerts knows it.
type outbox struct{ store *store.Store }

// kept are messages as the store keeps them.
func kept(messages []alert.Message) []store.Message {
	out := make([]store.Message, 0, len(messages))
	for _, m := range messages {
		out = append(out, store.Message{
			ID: m.ID, Receiver: m.Receiver, Ordering: m.Ordering, EventID: m.EventID, Target: m.Target, Body: m.Body,
		})
	}
	return out
}

func (o outbox) Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]alert.Message, error) {
	list, err := o.store.Claim(ctx, receiver, ttl, limit)
	out := make([]alert.Message, 0, len(list))
	for _, m := range list {
		out = append(out, alert.Message{
			ID: m.ID, Receiver: m.Receiver, Ordering: m.Ordering, EventID: m.EventID, Target: m.Target, Body: m.Body,
			Attempts: m.Attempts, CreatedAt: m.CreatedAt, Handle: m,
		})
	}
	return out, err
}

func (o outbox) NextDue(ctx context.Context, receiver string) (time.Duration, bool, error) {
	return o.store.NextDue(ctx, receiver)
}

func (o outbox) Delivered(ctx context.Context, m alert.Message) error {
	return said(m, func(row store.Message) error { return o.store.Delivered(ctx, row) })
}

func (o outbox) Retry(ctx context.Context, m alert.Message, why error, after time.Duration) error {
	return said(m, func(row store.Message) error { return o.store.Retry(ctx, row, why, after) })
}

func (o outbox) Bury(ctx context.Context, m alert.Message, why error) error {
	return said(m, func(row store.Message) error { return o.store.Bury(ctx, row, why) })
}

// said says what became of a message under the claim with which it came.
func said(m alert.Message, say func(store.Message) error) error {
	row, ok := m.Handle.(store.Message)
	if !ok {
		return fmt.Errorf("message %s was not claimed", m.ID)
	}
	err := say(row)
	if errors.Is(err, store.ErrClaimLost) {
		err = fmt.Errorf("%w: %w", alert.ErrClaimLost, err)
	}
	return err
}

func (o outbox) Hurry(ctx context.Context, receiver string) error {
	return o.store.Hurry(ctx, receiver)
}

func (o outbox) BuryAll(ctx context.Context, receiver string, age time.Duration, why error) (int64, error) {
	return o.store.BuryAll(ctx, receiver, age, why)
}

func (o outbox) Backlogs(ctx context.Context) ([]alert.Backlog, error) {
	list, err := o.store.Backlogs(ctx)
	out := make([]alert.Backlog, 0, len(list))
	for _, b := range list {
		out = append(out, alert.Backlog(b))
	}
	return out, err
}

var _ alert.Outbox = outbox{}
