package agent

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/store"
)

// alerts runs the sender of notifications. A reload changes its receivers.
type alerts struct {
	*alert.Sender
	log     *zap.Logger
	store   *store.Store
	wakeDue atomic.Bool // WakeHeld has not succeeded yet
	cancel  context.CancelFunc
	done    chan struct{}
}

// newAlerts connects the sender with the store: notifications are written with the change
// that they report, and claimed from there.
func (a *Agent) newAlerts(cfg alert.Config) error {
	sender, err := alert.New(a.log.Named("alert"), cfg, a.store, alert.Hooks{
		Delivered: a.exporter.CountDelivery, Backlogs: a.exportBacklogs,
		HeldBy: a.heldBy, Suppressed: a.exporter.CountSuppressed, Omitted: a.exporter.CountOmitted,
		TemplateFailed: a.exporter.CountTemplateFailure, OnlyReplica: a.onlyReplica, RequestEnded: a.requestEnded,
		Pattern: a.keyPattern, Salt: []byte(a.digest.Value([]byte("key_names"))),
	})
	if err != nil {
		return err
	}
	a.alerts = &alerts{Sender: sender, log: a.log, store: a.store}
	a.exportReceivers(cfg)
	a.store.Compose(a.composeNotifications)
	a.store.OnOutboxChange(a.wake)
	return nil
}

// onlyReplica reports whether no other replica can know better: with a store of its own
// always.
func (a *Agent) onlyReplica() bool { return a.member == nil || a.member.Isolated() }

// requestEnded reports whether a release request has ended. One that cannot be read may
// not have.
func (a *Agent) requestEnded(ctx context.Context, id string) bool {
	r, err := a.store.GetRequest(ctx, id)
	return err == nil && r.State.Final()
}

// exportReceivers creates the metrics of the receivers before their first notification.
func (a *Agent) exportReceivers(cfg alert.Config) {
	var names []string
	for _, r := range cfg.Receivers {
		names = append(names, r.Name)
	}
	a.exporter.SetReceivers(names...)
	for _, r := range cfg.Receivers {
		a.exporter.InitDelivery(r.Name, alert.OutcomeDelivered, string(alert.ReasonOK))
	}
}

func (a *Agent) exportBacklogs(list []locksteward.Backlog) {
	open := map[string]bool{}
	for _, r := range a.alerts.Receivers() {
		open[r.Name] = r.CircuitOpen
	}
	out := make([]exporter.Backlog, 0, len(list))
	for _, b := range list {
		out = append(out, exporter.Backlog{Receiver: b.Receiver, Waiting: b.Waiting + b.Grouped - b.Held, Dead: b.Dead, Oldest: b.Oldest, CircuitOpen: open[b.Receiver]})
	}
	a.exporter.SetOutbox(out)
	for _, b := range list {
		a.exporter.SetAlertGroups(b.Receiver, int(b.Groups))
	}
}

// start delivers until stop, after which it may be called again. The end of ctx alone does not stop it: the last
// transitions of the targets come after it.
func (r *alerts) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	// What held something back may have ended while no agent ran.
	r.WakeHeld(ctx)
	done := make(chan struct{})
	r.done = done
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			r.log.Error("sending notifications ended", zap.Error(err))
		}
	}()
}

// WakeHeld has it decided again which events are held back, after silences or inhibitions
// changed. If the store fails, retryWakeHeld tries again.
func (r *alerts) WakeHeld(ctx context.Context) {
	r.wakeDue.Store(true)
	r.retryWakeHeld(ctx)
}

// retryWakeHeld does nothing unless WakeHeld failed.
func (r *alerts) retryWakeHeld(ctx context.Context) {
	if !r.wakeDue.CompareAndSwap(true, false) {
		return
	}
	if err := r.store.WakeHeld(ctx); err != nil {
		r.wakeDue.Store(true)
		r.log.Warn("waking events that are held back failed, it is tried again", zap.Error(err))
	}
}

// stop sends what is due, for at most drain_timeout.
func (r *alerts) stop() {
	r.cancel()
	<-r.done
}

// composeNotifications returns the notifications about entries of the audit trail. It runs
// inside the transaction that writes them.
func (a *Agent) composeNotifications(w store.Written) []locksteward.Notification {
	var out []locksteward.Notification
	for _, entry := range w.Entries {
		if e := entry.Event; e != nil {
			if w.After != nil && w.After.ID == e.Request.ID {
				e.Request = *w.After
			}
			c := a.targets.Class(e.Request.Evidence.Class)
			out = append(out, a.alerts.Release(alert.Notice{
				EventID: e.ID, Kind: string(e.Kind), At: e.At, Actor: e.Actor, Target: e.Target, Request: e.Request, Message: e.Message, Loud: e.Loud,
				Team: c.Team, RunbookURL: c.RunbookURL,
			})...)
		}
	}
	return out
}
