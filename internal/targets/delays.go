package targets

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/source"
)

const (
	// lateFrom is from which delay on the log says that changes are judged late, lateTo
	// below which it says that this is over, and lateEvery how often it says it again.
	lateFrom  = 10 * time.Second
	lateTo    = 5 * time.Second
	lateEvery = time.Minute
)

// tellDelays has the metrics follow how far the target is watched, and says in the log
// when changes are judged late, until ctx ends. It waits for nobody who may be the
// reason.
func (w *Watched) tellDelays(ctx context.Context) {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	var late lateness
	for {
		state := w.scanner.WatchState()
		w.deps.Exporter.SetWatch(w.target.Name, watchOf(state))
		late.tell(w.log, state, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lateness is what was logged of delays.
type lateness struct {
	said time.Time // zero: that changes are judged in time
}

func (l *lateness) tell(log *zap.Logger, state source.WatchState, now time.Time) {
	switch {
	case state.Delay >= lateFrom && now.Sub(l.said) >= lateEvery:
		log.Warn("changes are judged late: this agent, its store or its machine has more to do than it can",
			zap.Duration("delay", state.Delay.Round(time.Millisecond)), zap.Int("waiting", state.Waiting))
		l.said = now
	case state.Delay < lateTo && !l.said.IsZero():
		log.Info("changes are judged in time again", zap.Duration("delay", state.Delay.Round(time.Millisecond)))
		l.said = time.Time{}
	}
}
