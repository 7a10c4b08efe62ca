package agent

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// keepEvery is how often it is tried again to write what the store did not take.
const keepEvery = time.Second

// keep writes findings to the store now. While the store does not work that is
// left to [watched.keeping], which writes all of them when it works again: nobody
// who watches waits for it twice. The caller holds w.mu.
func (w *watched) keep(ctx context.Context, write func(ctx context.Context) error) {
	if w.behind > 0 {
		w.behind++
		return
	}
	// A shutdown in between must not lose what was concluded already.
	if err := write(context.WithoutCancel(ctx)); err != nil {
		w.behind = 1
		w.log.Error("findings are not saved: it is tried again", zap.Error(err))
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
	behind, mine := w.behind, w.agent.findingsOf(w.target.Name)
	w.mu.Unlock()
	if behind == 0 {
		return true
	}
	if err := w.agent.store.SaveFindings(ctx, w.target.Name, mine); err != nil {
		w.log.Debug("findings are not saved yet", zap.Error(err))
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.behind > behind {
		return false // more came meanwhile
	}
	w.behind = 0
	w.log.Info("findings are saved again")
	return true
}
