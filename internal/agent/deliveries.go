package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/store"
)

// What the audit trail calls what people do with messages.
const (
	actionReplay = "alert.replay"
	actionTest   = "alert.test"
)

// deliveries are the messages as the console knows them.
type deliveries struct{ agent *Agent }

func (d deliveries) Deliveries(ctx context.Context, q console.DeliveryQuery) ([]api.Delivery, error) {
	list, err := d.agent.store.Messages(ctx, store.MessageQuery{
		State: store.MessageState(q.State), Receiver: q.Receiver, Before: q.Before, Limit: q.Limit,
	})
	out := make([]api.Delivery, 0, len(list))
	for _, m := range list {
		v := api.Delivery{
			ID: m.ID, Seq: m.Seq, Receiver: m.Receiver, Type: alert.TypeOf(m.Body), EventID: m.EventID, About: m.Ordering, Target: m.Target,
			State: string(m.State), Attempts: m.Attempts, Bytes: int64(len(m.Body)), CreatedAt: shown(m.CreatedAt), DoneAt: shown(m.DoneAt),
			LastError: m.LastError,
		}
		if m.State == store.MessageWaiting {
			v.NextAt = shown(m.NextAt)
		}
		out = append(out, v)
	}
	return out, stored(err)
}

// shown is a time as the API has it.
func shown(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}

func (d deliveries) Receivers(ctx context.Context) ([]api.Receiver, error) {
	list, err := outbox{d.agent.store}.Backlogs(ctx)
	if err != nil {
		return nil, stored(err)
	}
	out := []api.Receiver{}
	for _, r := range d.agent.alerts.Receivers() {
		out = append(out, api.Receiver{Name: r.Name, Configured: true, Resting: r.Open, RestsUntil: shown(r.Until), Gone: r.Gone})
	}
	for _, b := range list {
		n := slices.IndexFunc(out, func(r api.Receiver) bool { return r.Name == b.Receiver })
		if n < 0 {
			n = len(out)
			out = append(out, api.Receiver{Name: b.Receiver})
		}
		out[n].Waiting, out[n].Dead, out[n].OldestMs = b.Waiting+b.Grouped-b.Held, b.Dead, b.Oldest.Milliseconds()
		if out[n].Configured && b.Waiting > 0 {
			if out[n].Failing, err = d.agent.store.LastFailure(ctx, b.Receiver); err != nil {
				return nil, stored(err)
			}
		}
	}
	return out, nil
}

const addAgain = "; add it again to send what it missed"

// configured refuses a receiver that is gone: what would be sent to it again would
// be given up again.
func (d deliveries) configured(name, way string) error {
	if slices.ContainsFunc(d.agent.alerts.Receivers(), func(r alert.ReceiverState) bool { return r.Name == name }) {
		return nil
	}
	return fmt.Errorf("receiver %q: %w: alert.receivers has no such name%s", name, locksteward.ErrNotFound, way)
}

func (d deliveries) Replay(ctx context.Context, by, id string) (int64, error) {
	list, err := d.agent.store.Messages(ctx, store.MessageQuery{ID: id, Limit: 1})
	if err != nil {
		return 0, stored(err)
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("message %q: %w: 'locksteward alerts dead' lists what was given up", id, locksteward.ErrNotFound)
	}
	m := list[0]
	if m.State != store.MessageDead {
		return 0, fmt.Errorf("message %s is %s: %w: only what was given up is sent again", id, m.State, locksteward.ErrConflict)
	}
	if err := d.configured(m.Receiver, addAgain); err != nil {
		return 0, err
	}
	q := store.MessageQuery{ID: id}
	if m.Ordering != "" {
		// The fire without its resolve would stand for ever, the resolve alone says
		// nothing.
		q = store.MessageQuery{Receiver: m.Receiver, Ordering: m.Ordering}
	}
	return d.replay(ctx, by, id, q)
}

func (d deliveries) ReplayAll(ctx context.Context, by, receiver string) (int64, error) {
	if err := d.configured(receiver, addAgain); err != nil {
		return 0, err
	}
	return d.replay(ctx, by, receiver, store.MessageQuery{Receiver: receiver})
}

func (d deliveries) replay(ctx context.Context, by, what string, q store.MessageQuery) (int64, error) {
	n, err := d.agent.store.Replay(ctx, q, locksteward.Entry{At: time.Now(), Actor: by, Action: actionReplay, Subject: what})
	return n, stored(err)
}

func (d deliveries) TestReceiver(ctx context.Context, by, receiver string) (api.ReceiverTest, error) {
	if err := d.configured(receiver, ""); err != nil {
		return api.ReceiverTest{}, err
	}
	began := time.Now()
	err := d.agent.alerts.Test(ctx, receiver, by)
	out := api.ReceiverTest{Receiver: receiver, Delivered: err == nil, Reason: string(alert.ReasonOK), DurationMs: time.Since(began).Milliseconds()}
	entry := locksteward.Entry{At: began, Actor: by, Action: actionTest, Subject: receiver, Outcome: "delivered"}
	if err != nil {
		e, ok := errors.AsType[*alert.DeliveryError](err)
		if !ok {
			return api.ReceiverTest{}, err
		}
		out.Status, out.Reason, out.Error, entry.Outcome = e.Status, string(e.Reason), e.Error(), "failed"
	}
	if err := d.agent.store.AppendEntries(context.WithoutCancel(ctx), entry); err != nil {
		d.agent.log.Error("audit entry is not written", zap.String("action", actionTest), zap.Error(err))
	}
	return out, nil
}

var _ console.Deliveries = deliveries{}
