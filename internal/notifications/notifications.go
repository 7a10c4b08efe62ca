// Package notifications runs the sender of notifications on the agent's store: which are held back, who is notified of a
// release, and the metrics of receivers.
//
// # Guarantees
//
//   - Notifications are written with the change that they report, and are sent from the store.
//   - What a silence or an inhibition held back is looked at again when that changes, also if the store fails meanwhile.
//
// # Concurrency
//
// [Sender] is safe for concurrent use. [Sender.Start] begins what [Sender.Stop] ends.
//
// # Failure
//
// A store that cannot be read holds nothing back.
package notifications

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/targets"
	"github.com/locksteward/locksteward/store"
)

// Deps is what a [Sender] works with.
type Deps struct {
	Log     *zap.Logger
	Store   *store.Store
	Metrics *exporter.Exporter
	Targets *targets.Set
	// Silences are those of this moment.
	Silences func() []alert.Silence
	// DownElsewhere reports whether another replica says that a target is down.
	DownElsewhere func(target string) bool
	// OnlyReplica reports whether no other replica can know better.
	OnlyReplica func() bool
	// Salt is for names of locks that receivers do not see.
	Salt []byte
}

// Sender is the sender of notifications. A reload changes its receivers.
type Sender struct {
	*alert.Sender
	deps    Deps
	wakeDue atomic.Bool // WakeHeld has not succeeded yet
	cancel  context.CancelFunc
	done    chan struct{}
}

// New connects the sender with the store: notifications are written with the change
// that they report, and claimed from there. Wake is called when there are more of them.
func New(cfg alert.Config, deps Deps, wake func()) (*Sender, error) {
	s := &Sender{deps: deps}
	var err error
	s.Sender, err = alert.New(deps.Log.Named("alert"), cfg, deps.Store, alert.Hooks{
		Delivered: deps.Metrics.CountDelivery, Backlogs: s.exportBacklogs,
		HeldBy: s.heldBy, Suppressed: deps.Metrics.CountSuppressed, Omitted: deps.Metrics.CountOmitted,
		TemplateFailed: deps.Metrics.CountTemplateFailure, OnlyReplica: deps.OnlyReplica, RequestEnded: s.requestEnded,
		Pattern: s.keyPattern, Salt: deps.Salt,
	})
	if err != nil {
		return nil, err
	}
	s.ExportReceivers(cfg)
	deps.Store.Compose(s.Compose)
	deps.Store.OnOutboxChange(wake)
	return s, nil
}

// requestEnded reports whether a release request has ended. One that cannot be read may
// not have.
func (s *Sender) requestEnded(ctx context.Context, id string) bool {
	r, err := s.deps.Store.GetRequest(ctx, id)
	return err == nil && r.State.Final()
}

// ExportReceivers creates the metrics of the receivers before their first notification.
func (s *Sender) ExportReceivers(cfg alert.Config) {
	var names []string
	for _, r := range cfg.Receivers {
		names = append(names, r.Name)
	}
	s.deps.Metrics.SetReceivers(names...)
	for _, r := range cfg.Receivers {
		s.deps.Metrics.InitDelivery(r.Name, alert.OutcomeDelivered, string(alert.ReasonOK))
	}
}

func (s *Sender) exportBacklogs(list []locksteward.Backlog) {
	open := map[string]bool{}
	for _, r := range s.Receivers() {
		open[r.Name] = r.CircuitOpen
	}
	out := make([]exporter.Backlog, 0, len(list))
	for _, b := range list {
		out = append(out, exporter.Backlog{Receiver: b.Receiver, Waiting: b.Waiting + b.Grouped - b.Held, Dead: b.Dead, Oldest: b.Oldest, CircuitOpen: open[b.Receiver]})
	}
	s.deps.Metrics.SetOutbox(out)
	for _, b := range list {
		s.deps.Metrics.SetAlertGroups(b.Receiver, int(b.Groups))
	}
}

// Start delivers until Stop, after which it may be called again. The end of ctx alone does not stop it: the last
// transitions of the targets come after it.
func (s *Sender) Start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	// What held something back may have ended while no agent ran.
	s.WakeHeld(ctx)
	done := make(chan struct{})
	s.done = done
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			s.deps.Log.Error("sending notifications ended", zap.Error(err))
		}
	}()
}

// WakeHeld has it decided again which events are held back, after silences or inhibitions
// changed. If the store fails, RetryWakeHeld tries again.
func (s *Sender) WakeHeld(ctx context.Context) {
	s.wakeDue.Store(true)
	s.RetryWakeHeld(ctx)
}

// RetryWakeHeld does nothing unless WakeHeld failed.
func (s *Sender) RetryWakeHeld(ctx context.Context) {
	if !s.wakeDue.CompareAndSwap(true, false) {
		return
	}
	if err := s.deps.Store.WakeHeld(ctx); err != nil {
		s.wakeDue.Store(true)
		s.deps.Log.Warn("waking events that are held back failed, it is tried again", zap.Error(err))
	}
}

// Stop sends what is due, for at most drain_timeout.
func (s *Sender) Stop() {
	s.cancel()
	<-s.done
}

// Compose returns the notifications about entries of the audit trail. It runs
// inside the transaction that writes them.
func (s *Sender) Compose(w store.Written) []locksteward.Notification {
	var out []locksteward.Notification
	for _, entry := range w.Entries {
		if e := entry.Event; e != nil {
			if w.After != nil && w.After.ID == e.Request.ID {
				e.Request = *w.After
			}
			c := s.deps.Targets.Class(e.Request.Evidence.Class)
			out = append(out, s.Release(alert.Notice{
				EventID: e.ID, Kind: string(e.Kind), At: e.At, Actor: e.Actor, Target: e.Target, Request: e.Request, Message: e.Message, Loud: e.Loud,
				Team: c.Team, RunbookURL: c.RunbookURL,
			})...)
		}
	}
	return out
}
