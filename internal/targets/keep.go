package targets

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// keepEvery is how often writing is retried that the store failed.
const keepEvery = time.Second

// tell writes findings that changed with the events that receivers are notified of. The
// caller has the turn.
func (w *Watched) tell(ctx context.Context, transitions []locksteward.Transition) {
	if len(transitions) == 0 {
		return
	}
	w.keep(ctx, w.announce(transitions), func(ctx context.Context, out store.Outgoing) error {
		return w.deps.Store.UpdateFindings(ctx, w.target.Name, findingsOf(transitions), out)
	})
}

// findingsOf are the findings that changed, in the order in which they did.
func findingsOf(transitions []locksteward.Transition) iter.Seq[locksteward.Finding] {
	return func(yield func(locksteward.Finding) bool) {
		for _, t := range transitions {
			if !yield(t.Finding) {
				return
			}
		}
	}
}

// publish writes the findings without events, updates the metrics, and asks for releases.
// It comes after tell. The caller has the turn.
func (w *Watched) publish(ctx context.Context) {
	w.keepRest(ctx)
	mine := w.deps.Engine.FindingsOn(w.target.Name)
	w.deps.Exporter.SetFindings(w.target.Name, mine.Outlines())
	w.proposeAll(mine.Outlines())
}

// keep writes findings to the store now, with their events. While the store fails that is
// left to [Watched.keeping], which writes all of them when it works again: the watch does
// not wait for it twice. Notifications are sent from memory meanwhile. The caller has
// the turn.
func (w *Watched) keep(ctx context.Context, events []locksteward.FindingEvent, write func(ctx context.Context, out store.Outgoing) error) {
	if behind, fenced := w.backlog.addIfAny(); behind {
		w.sendFromMemory(events, fenced)
		return
	}
	// A shutdown in between must not lose what was concluded already.
	end := w.calls.Begin()
	err := write(context.WithoutCancel(ctx), store.Outgoing{Events: events})
	end()
	if err != nil {
		fenced := errors.Is(err, store.ErrLeaseLost)
		w.backlog.begin(time.Now().Add(keepEvery), fenced)
		w.sendFromMemory(events, fenced)
		w.log.Error("saving findings failed, it is tried again", zap.Error(err))
	}
}

// keepRest writes the findings that changed without an event: those that are pending. The
// first time it writes all findings, whatever the store has from before. The caller has
// the turn.
func (w *Watched) keepRest(ctx context.Context) {
	rest := w.deps.Engine.Changes(w.target.Name)
	if w.whole && rest.Len() == 0 {
		return
	}
	w.keep(ctx, nil, func(ctx context.Context, out store.Outgoing) error {
		if w.whole {
			return w.deps.Store.UpdateFindings(ctx, w.target.Name, rest.All(), out)
		}
		return w.deps.Store.SaveFindings(ctx, w.target.Name, w.deps.Engine.FindingsOn(w.target.Name).All(), out)
	})
	w.whole = true // what the store does not take is written with all others
}

// sendFromMemory sends notifications of events that the store does not have, unless
// another replica may be working on the target, which sends its own. The caller has
// the turn.
func (w *Watched) sendFromMemory(events []locksteward.FindingEvent, fenced bool) {
	if lost := w.backlog.addEvents(events); lost > 0 {
		w.log.Error("the buffer of events for the store is full: some notifications may never be sent", zap.Int("count", lost))
	}
	if !fenced {
		w.deps.Alerts.SendFromMemory(events)
	}
}

// keeping writes holds, and what the store did not take, in the background until ctx ends.
func (w *Watched) keeping(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	held := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := time.Now(); !w.backlog.isPatient(now) && w.catchUp(ctx) && now.Sub(held) >= SaveHoldsEvery {
				held = now
				w.saveHolds(ctx)
			}
		}
	}
}

// catchUp writes the findings as they are now if the store lacks some, and reports whether
// it has all.
func (w *Watched) catchUp(ctx context.Context) bool {
	if w.backlog.size() == 0 {
		return true
	}
	began := time.Now()
	if err := w.recall(ctx); err != nil {
		w.backlog.postpone(began)
		w.log.Debug("loading the findings of the last run failed", zap.Error(err))
		return false
	}
	endTurn := w.turn.take()
	mine := w.deps.Engine.FindingsOn(w.target.Name)
	changes, unsaved := w.backlog.now()
	endTurn()
	rest, tried := w.deps.Alerts.Unsaved(unsaved)
	if err := w.deps.Store.SaveFindings(ctx, w.target.Name, mine.All(), store.Outgoing{Events: rest, Notifications: tried}); err != nil {
		fenced := errors.Is(err, store.ErrLeaseLost)
		if !fenced { // else nothing is sent from memory any more
			w.deps.Alerts.SaveFailed(unsaved)
		}
		w.backlog.fail(began, fenced)
		w.log.Debug("saving findings failed again", zap.Error(err))
		return false
	}
	w.deps.Alerts.Saved(unsaved, tried)
	if !w.backlog.saved(changes, len(unsaved)) {
		return false // more came meanwhile
	}
	w.log.Info("findings are saved again")
	return true
}

// Forget resolves all findings of a target that is watched no longer. It comes
// after Stop.
func (w *Watched) Forget(ctx context.Context) {
	defer w.turn.take()()
	w.keep(ctx, w.announce(w.deps.Engine.RemoveTarget(w.target.Name, time.Now())), func(ctx context.Context, out store.Outgoing) error {
		return w.deps.Store.SaveFindings(ctx, w.target.Name, nil, out)
	})
}
