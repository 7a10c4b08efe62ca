package exporter

import (
	"maps"
	"slices"
)

// Store is the state of the agent's store since the agent started.
type Store struct {
	// Errors is how many calls failed, by kind.
	Errors map[string]int64
	// Damaged is set after damage was found.
	Damaged bool
	// NeedsRepair is set after a failed fsync.
	NeedsRepair bool
}

// SetStore publishes the state of the store.
func (e *Exporter) SetStore(s Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store == nil || e.store.Damaged != s.Damaged || e.store.NeedsRepair != s.NeedsRepair || !maps.Equal(e.store.Errors, s.Errors) {
		e.store, e.dirty = &s, true
	}
}

func (e *Exporter) emitStore(s *building) {
	if e.store == nil {
		return
	}
	s.series(storeDamaged, truth(e.store.Damaged))
	s.series(storeNeedsRepair, truth(e.store.NeedsRepair))
	for _, kind := range slices.Sorted(maps.Keys(e.store.Errors)) {
		s.series(storeErrors, float64(e.store.Errors[kind]), kind)
	}
}
