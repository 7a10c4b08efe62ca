package agent

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/store"
)

// alerts is the sender with its goroutine. A reload changes its receivers.
type alerts struct {
	*alert.Sender
	log    *zap.Logger
	store  *store.Store
	owed   atomic.Bool // what is held back is to be judged anew: see lookAgain
	cancel context.CancelFunc
	done   chan struct{}
}

// newAlerts joins the sender to the store: what people must hear is written with
// the change that it tells of, and claimed from there.
func (a *Agent) newAlerts(cfg alert.Config) error {
	sender, err := alert.New(a.log.Named("alert"), cfg, outbox{a.store}, alert.Hooks{
		Delivered: a.exporter.CountDelivery, Backlogs: a.showBacklogs,
		Held: a.held, Suppressed: a.exporter.CountSuppressed, Omitted: a.exporter.CountOmitted,
		TemplateFailed: a.exporter.CountTemplateFailure, Alone: a.alone, RequestOver: a.requestOver,
		Pattern: a.patternOf, Salt: []byte(a.digest.Value([]byte("key_names"))),
	})
	if err != nil {
		return err
	}
	a.alerts = &alerts{Sender: sender, log: a.log, store: a.store}
	a.knowReceivers(cfg)
	a.store.Compose(a.composed)
	a.store.Enqueued(a.wake)
	return nil
}

// alone says that no other replica can know better: with a store of its own always.
func (a *Agent) alone() bool { return a.keeper == nil || a.keeper.Alone() }

// requestOver says that a release request is over. One that cannot be read may not be.
func (a *Agent) requestOver(ctx context.Context, id string) bool {
	r, err := a.store.GetRequest(ctx, id)
	return err == nil && r.State.Final()
}

// knowReceivers has the metrics show the receivers, each before its first delivery.
func (a *Agent) knowReceivers(cfg alert.Config) {
	var names []string
	for _, r := range cfg.Receivers {
		names = append(names, r.Name)
	}
	a.exporter.SetReceivers(names...)
	for _, r := range cfg.Receivers {
		a.exporter.InitDelivery(r.Name, alert.OutcomeDelivered, string(alert.ReasonOK))
	}
}

func (a *Agent) showBacklogs(list []alert.Backlog) {
	open := map[string]bool{}
	for _, r := range a.alerts.Receivers() {
		open[r.Name] = r.Open
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

// start delivers until stop, after which it may come again. The end of ctx alone does not stop it: the last
// transitions of the targets come after it.
func (r *alerts) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	// What held something back may have ended while no agent ran.
	r.lookAgain(ctx)
	done := make(chan struct{})
	r.done = done
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			r.log.Error("deliveries ended", zap.Error(err))
		}
	}()
}

// lookAgain has what is held back judged anew. What the store does not take now is
// owed to it.
func (r *alerts) lookAgain(ctx context.Context) {
	r.owed.Store(true)
	r.settle(ctx)
}

// settle does what is owed.
func (r *alerts) settle(ctx context.Context) {
	if !r.owed.CompareAndSwap(true, false) {
		return
	}
	if err := r.store.WakeHeld(ctx); err != nil {
		r.owed.Store(true)
		r.log.Warn("what was held back is not looked at again yet: it is tried again", zap.Error(err))
	}
}

// stop delivers what is due, within the sender's bound.
func (r *alerts) stop() {
	r.cancel()
	<-r.done
}

// classNamed is a class of the configuration; the zero class if there is none.
func (a *Agent) classNamed(name string) class.Class {
	c, _ := a.current().classes.Get(name)
	return c
}

// composed are the messages about lines of the audit trail. It runs inside the
// transaction that writes them.
func (a *Agent) composed(w store.Written) []store.Message {
	var out []alert.Message
	for _, entry := range w.Entries {
		if e := entry.Event; e != nil {
			if w.After != nil && w.After.ID == e.Request.ID {
				e.Request = *w.After
			}
			c := a.classNamed(e.Request.Evidence.Class)
			out = append(out, a.alerts.Release(alert.Notice{
				EventID: e.ID, Kind: string(e.Kind), At: e.At, Actor: e.Actor, Target: e.Target, Request: e.Request, Text: e.Text, Loud: e.Loud,
				Team: c.Team, RunbookURL: c.RunbookURL,
			})...)
		}
	}
	return kept(out)
}
