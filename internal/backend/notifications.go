package backend

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

// The actions of the audit trail about notifications.
const (
	actionRetry = "notification.retry"
	actionTest  = "notification.test"
)

// notifications is the outbox for the console.
type notifications struct{ backend *Backend }

func (n notifications) Notifications(ctx context.Context, q console.NotificationQuery) ([]api.Notification, error) {
	list, err := n.backend.deps.Store.Notifications(ctx, store.NotificationQuery{
		State: locksteward.NotificationState(q.State), Receiver: q.Receiver, Before: q.Before, Limit: q.Limit,
	})
	out := make([]api.Notification, 0, len(list))
	for _, m := range list {
		v := api.Notification{
			ID: m.ID, Seq: m.Seq, Receiver: m.Receiver, Type: alert.TypeOf(m.Body), EventID: m.EventID, About: m.Ordering, Target: m.Target,
			State: string(m.State), Attempts: m.Attempts, Bytes: int64(len(m.Body)), CreatedAt: api.Time(m.CreatedAt), DoneAt: api.Time(m.DoneAt),
			LastError: m.LastError,
		}
		if m.State == locksteward.NotificationWaiting {
			v.NextAt = api.Time(m.NextAt)
		}
		out = append(out, v)
	}
	return out, stored(err)
}

func (n notifications) Receivers(ctx context.Context) ([]api.Receiver, error) {
	list, err := n.backend.deps.Store.Backlogs(ctx)
	if err != nil {
		return nil, stored(err)
	}
	out := []api.Receiver{}
	for _, r := range n.backend.deps.Alerts.Receivers() {
		out = append(out, api.Receiver{Name: r.Name, Configured: true, CircuitOpen: r.CircuitOpen, PausedUntil: api.Time(r.Until), Gone: r.Gone})
	}
	for _, b := range list {
		i := slices.IndexFunc(out, func(r api.Receiver) bool { return r.Name == b.Receiver })
		if i < 0 {
			i = len(out)
			out = append(out, api.Receiver{Name: b.Receiver})
		}
		out[i].Waiting, out[i].Dead, out[i].OldestMs = b.Waiting+b.Grouped-b.Held, b.Dead, b.Oldest.Milliseconds()
		if out[i].Configured && b.Waiting > 0 {
			if out[i].Failing, err = n.backend.deps.Store.LastFailure(ctx, b.Receiver); err != nil {
				return nil, stored(err)
			}
		}
	}
	return out, nil
}

const addAgain = "; add it again to send what it missed"

// configured refuses a removed receiver: what is retried would be given up again.
func (n notifications) configured(name, hint string) error {
	if slices.ContainsFunc(n.backend.deps.Alerts.Receivers(), func(r alert.ReceiverState) bool { return r.Name == name }) {
		return nil
	}
	return fmt.Errorf("receiver %q: %w: alert.receivers has no such name%s", name, locksteward.ErrNotFound, hint)
}

func (n notifications) Retry(ctx context.Context, by, id string) (int64, error) {
	list, err := n.backend.deps.Store.Notifications(ctx, store.NotificationQuery{ID: id, Limit: 1})
	if err != nil {
		return 0, stored(err)
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("notification %q: %w: 'locksteward notifications list --state dead' lists what was given up", id, locksteward.ErrNotFound)
	}
	m := list[0]
	if m.State != locksteward.NotificationDead {
		return 0, fmt.Errorf("notification %s is %s: %w: only dead letters can be retried", id, m.State, locksteward.ErrConflict)
	}
	if err := n.configured(m.Receiver, addAgain); err != nil {
		return 0, err
	}
	q := store.NotificationQuery{ID: id}
	if m.Ordering != "" {
		// Otherwise the alert would never resolve, or resolve without a fire.
		q = store.NotificationQuery{Receiver: m.Receiver, Ordering: m.Ordering}
	}
	return n.retry(ctx, by, id, q)
}

func (n notifications) RetryAll(ctx context.Context, by, receiver string) (int64, error) {
	if err := n.configured(receiver, addAgain); err != nil {
		return 0, err
	}
	return n.retry(ctx, by, receiver, store.NotificationQuery{Receiver: receiver})
}

func (n notifications) retry(ctx context.Context, by, what string, q store.NotificationQuery) (int64, error) {
	count, err := n.backend.deps.Store.RetryDead(ctx, q, locksteward.Entry{At: time.Now(), Actor: by, Action: actionRetry, Subject: what})
	return count, stored(err)
}

func (n notifications) TestReceiver(ctx context.Context, by, receiver string) (api.ReceiverTest, error) {
	if err := n.configured(receiver, ""); err != nil {
		return api.ReceiverTest{}, err
	}
	began := time.Now()
	err := n.backend.deps.Alerts.Test(ctx, receiver, by)
	out := api.ReceiverTest{Receiver: receiver, Delivered: err == nil, Reason: string(alert.ReasonOK), DurationMs: time.Since(began).Milliseconds()}
	entry := locksteward.Entry{At: began, Actor: by, Action: actionTest, Subject: receiver, Outcome: "delivered"}
	if err != nil {
		e, ok := errors.AsType[*alert.DeliveryError](err)
		if !ok {
			return api.ReceiverTest{}, err
		}
		out.Status, out.Reason, out.Error, entry.Outcome = e.Status, string(e.Reason), e.Error(), "failed"
	}
	if err := n.backend.deps.Store.AppendEntries(context.WithoutCancel(ctx), entry); err != nil {
		n.backend.deps.Log.Error("audit entry is not written", zap.String("action", actionTest), zap.Error(err))
	}
	return out, nil
}

var (
	_ console.Notifications = notifications{}
	_ alert.Outbox          = (*store.Store)(nil)
)
