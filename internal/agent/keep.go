package agent

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/store"
)

// keepEvery is how often it is tried again to write what the store did not take.
const keepEvery = time.Second

// maxUntold bounds the changes on one target that wait for a store that does
// not work.
const maxUntold = 20_000

// tell tells people what changed, through the store, so that what they were told of
// is known after a crash. The caller holds w.mu.
func (w *watched) tell(ctx context.Context, transitions []locksteward.Transition) {
	if len(transitions) == 0 {
		return
	}
	w.keep(ctx, w.announce(transitions), func(ctx context.Context, t store.Telling) error {
		return w.agent.store.NoteFindings(ctx, w.target.Name, findingsOf(transitions), t)
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

// publish keeps the findings of which nobody is told, has the metrics follow, and asks
// for releases. It comes after tell. The caller holds w.mu.
func (w *watched) publish(ctx context.Context) {
	w.keepRest(ctx)
	mine := w.agent.engine.FindingsOn(w.target.Name)
	w.agent.exporter.SetFindings(w.target.Name, mine.Outlines())
	w.proposeAll(mine.Outlines())
}

// keep writes findings to the store now, with what people are told of them. While
// the store does not work that is left to [watched.keeping], which writes all of
// them when it works again: nobody who watches waits for it twice. People are told
// from memory meanwhile. The caller holds w.mu.
func (w *watched) keep(ctx context.Context, changes []alert.Change, write func(ctx context.Context, t store.Telling) error) {
	if w.behind > 0 {
		w.behind++
		w.hold(changes, w.fenced)
		return
	}
	// A shutdown in between must not lose what was concluded already.
	end := w.calls.begin()
	err := write(context.WithoutCancel(ctx), telling(changes))
	end()
	if err != nil {
		w.behind, w.again, w.fenced = 1, time.Now().Add(keepEvery), errors.Is(err, store.ErrLeaseLost)
		w.hold(changes, w.fenced)
		w.log.Error("findings are not saved: it is tried again", zap.Error(err))
	}
}

// keepRest writes the findings that changed and of which nobody is told: those that
// wait for their time. The first time it writes all there are, whatever the store has
// from before. The caller holds w.mu.
func (w *watched) keepRest(ctx context.Context) {
	a := w.agent
	rest := a.engine.Changes(w.target.Name)
	if w.whole && rest.Len() == 0 {
		return
	}
	w.keep(ctx, nil, func(ctx context.Context, t store.Telling) error {
		if w.whole {
			return a.store.NoteFindings(ctx, w.target.Name, rest.All(), t)
		}
		return a.store.ReplaceFindings(ctx, w.target.Name, a.engine.FindingsOn(w.target.Name).All(), t)
	})
	w.whole = true // what the store does not take is written with all others
}

// hold has people told of what the store does not have, unless another replica may be
// at work, which tells them itself. The caller holds w.mu.
func (w *watched) hold(changes []alert.Change, fenced bool) {
	if room := maxUntold - len(w.untold); len(changes) > room {
		w.log.Error("alerts are told once at best: too many wait for the store", zap.Int("count", len(changes)-room))
		w.untold = append(w.untold, changes[:room]...)
	} else {
		w.untold = append(w.untold, changes...)
	}
	if !fenced {
		w.agent.alerts.Spare(changes)
	}
}

// keeping writes what was counted, and what the store did not take, beside the
// watch until ctx ends.
func (w *watched) keeping(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	held := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := time.Now(); !w.patient(now) && w.catchUp(ctx) && now.Sub(held) >= saveHoldsEvery {
				held = now
				w.saveHolds(ctx)
			}
		}
	}
}

// patient says that the store failed just now. Nobody is told from memory of what is
// being written, and a store that another program locks lets a writer wait for
// seconds: the time between two attempts is at least as long as one.
func (w *watched) patient(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.behind > 0 && now.Before(w.again)
}

// catchUp writes the findings as they are now if the store lacks some, and says
// whether it has all.
func (w *watched) catchUp(ctx context.Context) bool {
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
		w.log.Debug("findings of the last run are not known yet", zap.Error(err))
		return false
	}
	w.mu.Lock()
	mine, untold := w.agent.engine.FindingsOn(w.target.Name), slices.Clone(w.untold)
	w.mu.Unlock()
	rest, tried := w.agent.alerts.Leftover(untold)
	if err := w.agent.store.ReplaceFindings(ctx, w.target.Name, mine.All(), telling(rest, tried...)); err != nil {
		fenced := errors.Is(err, store.ErrLeaseLost)
		if !fenced { // else nobody is told from memory any more
			w.agent.alerts.Resume(untold)
		}
		w.mu.Lock()
		w.again, w.fenced = time.Now().Add(max(keepEvery, time.Since(began))), fenced
		w.mu.Unlock()
		w.log.Debug("findings are not saved yet", zap.Error(err))
		return false
	}
	w.agent.alerts.Kept(untold, tried)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.untold = w.untold[len(untold):]
	if w.behind > behind {
		return false // more came meanwhile
	}
	w.behind = 0
	w.log.Info("findings are saved again")
	return true
}

// forget resolves all findings of a target that is watched no longer. It comes
// after stop.
func (w *watched) forget(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(ctx, w.announce(w.agent.engine.RemoveTarget(w.target.Name, time.Now())), func(ctx context.Context, t store.Telling) error {
		return w.agent.store.SaveFindings(ctx, w.target.Name, nil, t)
	})
}
