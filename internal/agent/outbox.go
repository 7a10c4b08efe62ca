package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
			ID: m.ID, Receiver: m.Receiver, Ordering: m.Ordering, Urgency: m.Urgency, EventID: m.EventID, Target: m.Target, Body: m.Body,
		})
	}
	return out
}

// telling is what people are to be told of findings, as the store keeps it with them.
func telling(changes []alert.Change, tried ...alert.Message) store.Telling {
	return store.Telling{Messages: kept(tried), Count: len(changes), More: func(yield func([]store.Event) bool) {
		for part := range slices.Chunk(changes, eventsAtOnce) {
			if !yield(eventsOf(part)) {
				return
			}
		}
	}}
}

// eventsAtOnce is how many changes are made events at once.
const eventsAtOnce = 500

func eventsOf(changes []alert.Change) []store.Event {
	out := make([]store.Event, 0, len(changes))
	for _, c := range changes {
		e := store.Event{ID: c.EventID, Number: c.Seq, At: c.At, Survey: c.Survey, Finding: c.Finding, To: make([]store.Address, 0, len(c.To))}
		for _, a := range c.To {
			e.To = append(e.To, store.Address(a))
		}
		out = append(out, e)
	}
	return out
}

func changeOf(e store.Event) alert.Change {
	return alert.Change{EventID: e.ID, Seq: e.Number, At: e.At, Survey: e.Survey, Finding: e.Finding}
}

func changesOf(events []store.Event) []alert.Change {
	out := make([]alert.Change, 0, len(events))
	for _, e := range events {
		out = append(out, changeOf(e))
	}
	return out
}

func (o outbox) NextGroup(ctx context.Context, receiver, behind string) (time.Duration, bool, error) {
	return o.store.NextGroup(ctx, receiver, behind)
}

func (o outbox) Flush(ctx context.Context, receiver, behind string, groups, changes int, compose func([]alert.Due) ([]alert.Flushed, []alert.Message)) (int, error) {
	return o.store.Flush(ctx, receiver, behind, groups, changes, func(list []store.DueGroup) ([]store.Flushed, []store.Message) {
		due := make([]alert.Due, 0, len(list))
		for _, g := range list {
			d := alert.Due{Group: g.Group, LastAt: g.LastAt, Now: g.Now, More: g.More, Told: g.Told, Standing: changesOf(g.Standing)}
			d.Waiting = make([]alert.Waiting, 0, len(g.Waiting))
			for _, w := range g.Waiting {
				d.Waiting = append(d.Waiting, alert.Waiting{Change: changeOf(w.Event), Handle: w.Seq, Known: w.Known, Held: w.Held})
			}
			due = append(due, d)
		}
		flushed, messages := compose(due)
		out := make([]store.Flushed, 0, len(flushed))
		for _, f := range flushed {
			out = append(out, store.Flushed(f))
		}
		return out, kept(messages)
	})
}

func (o outbox) Waits(ctx context.Context, receiver string) (bool, error) {
	return o.store.Waits(ctx, receiver)
}

func (o outbox) Standing(ctx context.Context, receiver, after string, limit int) ([]alert.Change, error) {
	events, err := o.store.Standing(ctx, receiver, after, limit)
	return changesOf(events), err
}

func (o outbox) Drop(ctx context.Context, receiver string) (int64, error) {
	return o.store.DropReceiver(ctx, receiver)
}

func (o outbox) Claim(ctx context.Context, receiver string, ttl time.Duration, limit int) ([]alert.Message, error) {
	list, err := o.store.Claim(ctx, receiver, ttl, limit)
	out := make([]alert.Message, 0, len(list))
	for _, m := range list {
		out = append(out, alert.Message{
			ID: m.ID, Receiver: m.Receiver, Ordering: m.Ordering, Urgency: m.Urgency, EventID: m.EventID, Target: m.Target, Body: m.Body,
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
	if err != nil {
		return nil, err
	}
	out := make([]alert.Backlog, 0, len(list))
	for _, b := range list {
		out = append(out, alert.Backlog{Receiver: b.Receiver, Waiting: b.Waiting, Dead: b.Dead, Oldest: b.Oldest})
	}
	pending, err := o.store.Pending(ctx)
	for _, p := range pending {
		n := slices.IndexFunc(out, func(b alert.Backlog) bool { return b.Receiver == p.Receiver })
		if n < 0 {
			n = len(out)
			out = append(out, alert.Backlog{Receiver: p.Receiver})
		}
		out[n].Grouped, out[n].Held, out[n].Groups = p.Waiting, p.Held, p.Groups
		out[n].Oldest = max(out[n].Oldest, p.Late)
	}
	return out, err
}

var _ alert.Outbox = outbox{}
