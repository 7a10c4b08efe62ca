package agent

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/store"
)

// healthEvery is how often the metrics of the store are updated.
const healthEvery = time.Second

// checkStore reads the whole store once, in the background: it reports damage before a
// call meets it.
func (a *Agent) checkStore(ctx context.Context) error {
	if err := a.store.Check(ctx); err != nil && ctx.Err() == nil {
		level := zap.WarnLevel
		if errors.Is(err, store.ErrDamaged) {
			level = zap.ErrorLevel
		}
		a.log.Log(level, "the check of the store failed", zap.Error(err))
	}
	return nil
}

// watchHealth updates the metrics of the store and logs what needs a person, until ctx ends.
func (a *Agent) watchHealth(ctx context.Context) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	var last store.Health
	for {
		h := a.updateStoreMetrics()
		if h.Damaged != "" && last.Damaged == "" {
			a.log.Error("the store is damaged: its damaged part cannot be read", zap.String("error", h.Damaged))
		}
		if h.NeedsRepair != "" && last.NeedsRepair == "" {
			a.log.Error("the store needs repair: nothing is written to it any more", zap.String("error", h.NeedsRepair))
		}
		last = h
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// updateStoreMetrics updates the metrics of the store and returns its health.
func (a *Agent) updateStoreMetrics() store.Health {
	h := a.store.Health()
	a.exporter.SetStore(exporter.Store{Errors: h.Errors, Damaged: h.Damaged != "", NeedsRepair: h.NeedsRepair != ""})
	return h
}

// storeNotes is the part of /-/ready about the store. The agent stays ready: it watches and
// alerts without its store.
func storeNotes(h store.Health) (notes []string) {
	if h.Damaged != "" {
		notes = append(notes, "store: damaged: "+h.Damaged)
	}
	if h.NeedsRepair != "" {
		notes = append(notes, "store: needs repair: nothing is written: "+h.NeedsRepair)
	}
	return notes
}
