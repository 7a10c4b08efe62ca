package agent

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/store"
)

// keepEvery is how often it is tried again to write what the store did not take.
const keepEvery = time.Second

// maxUntold bounds the messages about one target that wait for a store that does
// not work.
const maxUntold = 20_000

// keep writes findings to the store now, with what people are told of them. While
// the store does not work that is left to [watched.keeping], which writes all of
// them when it works again: nobody who watches waits for it twice. People are told
// from memory meanwhile. The caller holds w.mu.
func (w *watched) keep(ctx context.Context, told []alert.Message, write func(ctx context.Context, told ...store.Message) error) {
	if w.behind > 0 {
		w.behind++
		w.hold(told)
		return
	}
	// A shutdown in between must not lose what was concluded already.
	if err := write(context.WithoutCancel(ctx), kept(told)...); err != nil {
		w.behind = 1
		w.hold(told)
		w.log.Error("findings are not saved: it is tried again", zap.Error(err))
	}
}

// hold has people told of what the store does not have. The caller holds w.mu.
func (w *watched) hold(told []alert.Message) {
	if room := maxUntold - len(w.untold); len(told) > room {
		w.log.Error("alerts are told once at best: too many wait for the store", zap.Int("count", len(told)-room))
		w.untold = append(w.untold, told[:room]...)
	} else {
		w.untold = append(w.untold, told...)
	}
	w.agent.alerts.Spare(told)
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
		case now := <-tick.C:
			if w.catchUp(ctx) && now.Sub(held) >= saveHoldsEvery {
				held = now
				w.saveHolds(ctx)
			}
		}
	}
}

// catchUp writes the findings as they are now if the store lacks some, and says
// whether it has all.
func (w *watched) catchUp(ctx context.Context) bool {
	w.mu.Lock()
	behind, mine, untold := w.behind, w.agent.findingsOf(w.target.Name), slices.Clone(w.untold)
	w.mu.Unlock()
	if behind == 0 {
		return true
	}
	unsent := w.agent.alerts.Unsent(untold)
	if err := w.agent.store.SaveFindings(ctx, w.target.Name, mine, kept(unsent)...); err != nil {
		w.log.Debug("findings are not saved yet", zap.Error(err))
		return false
	}
	w.agent.alerts.Kept(untold, unsent)
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
	w.keep(ctx, w.announce(w.agent.engine.RemoveTarget(w.target.Name, time.Now())), func(ctx context.Context, told ...store.Message) error {
		return w.agent.store.SaveFindings(ctx, w.target.Name, nil, told...)
	})
}
