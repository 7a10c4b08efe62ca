package agent

import (
	"context"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/store"
)

// alerts is the sender with its goroutine. A reload changes its receivers.
type alerts struct {
	*alert.Sender
	log    *zap.Logger
	cancel context.CancelFunc
	done   chan struct{}
}

// newAlerts joins the sender to the store: what people must hear is written with
// the change that it tells of, and claimed from there.
func (a *Agent) newAlerts(cfg alert.Config) error {
	sender, err := alert.New(a.log.Named("alert"), cfg, outbox{a.store}, alert.Hooks{
		Delivered: a.exporter.CountDelivery, Backlogs: a.showBacklogs,
	})
	if err != nil {
		return err
	}
	a.alerts = &alerts{Sender: sender, log: a.log, done: make(chan struct{})}
	a.knowReceivers(cfg)
	a.store.Compose(a.composed)
	a.store.Enqueued(sender.Wake)
	return nil
}

// knowReceivers has the metrics show a receiver before its first delivery.
func (a *Agent) knowReceivers(cfg alert.Config) {
	for _, r := range cfg.Receivers {
		a.exporter.InitDelivery(r.Name, alert.OutcomeDelivered, string(alert.ReasonOK))
	}
}

func (a *Agent) showBacklogs(list []alert.Backlog) {
	out := make([]exporter.Backlog, 0, len(list))
	for _, b := range list {
		out = append(out, exporter.Backlog{Receiver: b.Receiver, Waiting: b.Waiting, Dead: b.Dead, Oldest: b.Oldest})
	}
	a.exporter.SetOutbox(out)
}

// start delivers until stop. The end of ctx alone does not stop it: the last
// transitions of the targets come after it.
func (r *alerts) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			r.log.Error("deliveries ended", zap.Error(err))
		}
	}()
}

// stop delivers what is due, within the sender's bound.
func (r *alerts) stop() {
	r.cancel()
	<-r.done
}

// composed are the messages about lines of the audit trail. It runs inside the
// transaction that writes them.
func (a *Agent) composed(w store.Written) []store.Message {
	var r locksteward.Request
	if w.After != nil {
		r = *w.After
	}
	var out []alert.Message
	for _, line := range w.Entries {
		if e, ok := release.EventOf(line, r); ok {
			out = append(out, a.alerts.Release(alert.Notice{
				EventID: e.ID, Kind: string(e.Kind), At: e.At, Actor: e.Actor, Target: e.Target, Request: e.Request, Text: e.Text, Loud: e.Loud,
			})...)
		}
	}
	return kept(out)
}
