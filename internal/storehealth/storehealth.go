// Package storehealth watches the agent's store: whether it is damaged, needs repair, was emptied, or was put back to an older
// state.
//
// # Guarantees
//
//   - Damage that the store reports is logged once and is in the metrics within a second.
//
// # Not guaranteed
//
//   - Damage that nothing has read yet is found by the check after the start alone.
//
// # Concurrency
//
// [Monitor] is safe for concurrent use. [Monitor.Run] returns after all its goroutines ended.
//
// # Failure
//
// Every caller reports a store that does not answer; this package tries again.
package storehealth

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/store"
)

// healthEvery is how often the metrics of the store are updated.
const healthEvery = time.Second

// Monitor watches the store. Make one with [New].
type Monitor struct {
	log     *zap.Logger
	store   *store.Store
	metrics *exporter.Exporter
	onOlder func(context.Context)
}

// New returns a monitor. onOlder is called when a database is found to be put back to an older state; nil for a file, which
// is in use all the while.
func New(log *zap.Logger, st *store.Store, metrics *exporter.Exporter, onOlder func(context.Context)) *Monitor {
	return &Monitor{log: log, store: st, metrics: metrics, onOlder: onOlder}
}

// Run watches the store until ctx ends. It returns nil.
func (m *Monitor) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { m.check(ctx) })
	group.Go(func() { m.watchHealth(ctx) })
	if m.onOlder != nil {
		group.Go(func() { m.watchOlder(ctx) })
	}
	group.Wait()
	return nil
}

// check reads the whole store once, in the background: it reports damage before a
// call meets it.
func (m *Monitor) check(ctx context.Context) {
	if err := m.store.Check(ctx); err != nil && ctx.Err() == nil {
		level := zap.WarnLevel
		if errors.Is(err, store.ErrDamaged) {
			level = zap.ErrorLevel
		}
		m.log.Log(level, "the check of the store failed", zap.Error(err))
	}
}

// watchHealth updates the metrics of the store and logs what needs a person, until ctx ends.
func (m *Monitor) watchHealth(ctx context.Context) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	var last store.Health
	for {
		h := m.Update()
		if h.Damaged != "" && last.Damaged == "" {
			m.log.Error("the store is damaged: its damaged part cannot be read", zap.String("error", h.Damaged))
		}
		if h.NeedsRepair != "" && last.NeedsRepair == "" {
			m.log.Error("the store needs repair: nothing is written to it any more", zap.String("error", h.NeedsRepair))
		}
		last = h
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Update updates the metrics of the store and returns its health.
func (m *Monitor) Update() store.Health {
	h := m.store.Health()
	m.metrics.SetStore(exporter.Store{Errors: h.Errors, Damaged: h.Damaged != "", NeedsRepair: h.NeedsRepair != ""})
	return h
}

// Notes is the part of /-/ready about the store. The agent stays ready: it watches and
// alerts without its store.
func Notes(h store.Health) (notes []string) {
	if h.Damaged != "" {
		notes = append(notes, "store: damaged: "+h.Damaged)
	}
	if h.NeedsRepair != "" {
		notes = append(notes, "store: needs repair: nothing is written: "+h.NeedsRepair)
	}
	return notes
}
