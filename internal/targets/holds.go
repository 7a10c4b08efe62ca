package targets

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/internal/report"
)

const (
	// HoldsKept is how long it is known how locks were held.
	HoldsKept = 30 * 24 * time.Hour
	// SaveHoldsEvery is how much of that a crash may cost.
	SaveHoldsEvery = 10 * time.Second
	// restored is how far back an agent goes on with what the last one counted: far
	// more than a server's clock may differ by.
	restored = 24 * time.Hour
)

// restoreHolds continues the counts of the last hours.
func (w *Watched) restoreHolds(ctx context.Context) {
	rows, err := w.deps.Store.LoadHolds(ctx, w.target.Name, report.SlotOf(time.Now().Add(-restored)))
	if err != nil {
		w.log.Error("how locks were held in this hour is not known: it is counted anew", zap.Error(err))
	}
	w.holds.Restore(rows)
}

// saveHolds writes what was counted since the last time.
func (w *Watched) saveHolds(ctx context.Context) {
	rows := w.holds.Unsaved()
	if err := w.deps.Store.SaveHolds(context.WithoutCancel(ctx), rows); err != nil {
		w.log.Error("how locks were held is not saved: it is tried again", zap.Error(err))
		return
	}
	w.holds.Saved(rows)
}

// coverHolds notes what the watch covers: locks whose changes are noticed are
// hardly older than their first look.
func (w *Watched) coverHolds(watch exporter.Watch) {
	w.holds.Watched(time.Now(), watch.Classes, watch.Blind)
}
