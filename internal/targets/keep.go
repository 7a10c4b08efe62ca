package targets

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// keepEvery is how often writing is retried that the store failed.
const keepEvery = time.Second

// maxUnsaved bounds the events on one target that wait for a failing store.
const maxUnsaved = 20_000

// tell writes findings that changed with the events that receivers are notified of. The
// caller holds w.mu.
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
// It comes after tell. The caller holds w.mu.
func (w *Watched) publish(ctx context.Context) {
	w.keepRest(ctx)
	mine := w.deps.Engine.FindingsOn(w.target.Name)
	w.deps.Exporter.SetFindings(w.target.Name, mine.Outlines())
	w.proposeAll(mine.Outlines())
}

// keep writes findings to the store now, with their events. While the store fails that is
// left to [Watched.keeping], which writes all of them when it works again: the watch does
// not wait for it twice. Notifications are sent from memory meanwhile. The caller holds
// w.mu.
func (w *Watched) keep(ctx context.Context, events []locksteward.FindingEvent, write func(ctx context.Context, out store.Outgoing) error) {
	if w.behind > 0 {
		w.behind++
		w.sendFromMemory(events, w.fenced)
		return
	}
	// A shutdown in between must not lose what was concluded already.
	end := w.calls.Begin()
	err := write(context.WithoutCancel(ctx), store.Outgoing{Events: events})
	end()
	if err != nil {
		w.behind, w.again, w.fenced = 1, time.Now().Add(keepEvery), errors.Is(err, store.ErrLeaseLost)
		w.sendFromMemory(events, w.fenced)
		w.log.Error("saving findings failed, it is tried again", zap.Error(err))
	}
}

// keepRest writes the findings that changed without an event: those that are pending. The
// first time it writes all findings, whatever the store has from before. The caller holds
// w.mu.
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
// another replica may be working on the target, which sends its own. The caller holds
// w.mu.
func (w *Watched) sendFromMemory(events []locksteward.FindingEvent, fenced bool) {
	if room := maxUnsaved - len(w.unsaved); len(events) > room {
		w.log.Error("the buffer of events for the store is full: some notifications may never be sent", zap.Int("count", len(events)-room))
		w.unsaved = append(w.unsaved, events[:room]...)
	} else {
		w.unsaved = append(w.unsaved, events...)
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
			if now := time.Now(); !w.patient(now) && w.catchUp(ctx) && now.Sub(held) >= SaveHoldsEvery {
				held = now
				w.saveHolds(ctx)
			}
		}
	}
}

// patient reports whether the store failed just now. Nothing is sent from memory while it
// is being written, and a store that another program locks lets a writer wait for
// seconds: the time between two attempts is at least as long as one.
func (w *Watched) patient(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.behind > 0 && now.Before(w.again)
}

// catchUp writes the findings as they are now if the store lacks some, and reports whether
// it has all.
func (w *Watched) catchUp(ctx context.Context) bool {
	w.mu.Lock()
	behind := w.behind
	if behind == 0 {
		w.mu.Unlock()
		return true
	}
	w.mu.Unlock()
	began := time.Now()
	if err := w.recall(ctx); err != nil {
		w.mu.Lock()
		w.again = time.Now().Add(max(keepEvery, time.Since(began)))
		w.mu.Unlock()
		w.log.Debug("loading the findings of the last run failed", zap.Error(err))
		return false
	}
	w.mu.Lock()
	mine, unsaved := w.deps.Engine.FindingsOn(w.target.Name), slices.Clone(w.unsaved)
	w.mu.Unlock()
	rest, tried := w.deps.Alerts.Unsaved(unsaved)
	if err := w.deps.Store.SaveFindings(ctx, w.target.Name, mine.All(), store.Outgoing{Events: rest, Notifications: tried}); err != nil {
		fenced := errors.Is(err, store.ErrLeaseLost)
		if !fenced { // else nothing is sent from memory any more
			w.deps.Alerts.SaveFailed(unsaved)
		}
		w.mu.Lock()
		w.again, w.fenced = time.Now().Add(max(keepEvery, time.Since(began))), fenced
		w.mu.Unlock()
		w.log.Debug("saving findings failed again", zap.Error(err))
		return false
	}
	w.deps.Alerts.Saved(unsaved, tried)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsaved = w.unsaved[len(unsaved):]
	if w.behind > behind {
		return false // more came meanwhile
	}
	w.behind = 0
	w.log.Info("findings are saved again")
	return true
}

// Forget resolves all findings of a target that is watched no longer. It comes
// after Stop.
func (w *Watched) Forget(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(ctx, w.announce(w.deps.Engine.RemoveTarget(w.target.Name, time.Now())), func(ctx context.Context, out store.Outgoing) error {
		return w.deps.Store.SaveFindings(ctx, w.target.Name, nil, out)
	})
}
