package exporter

import (
	"maps"
	"slices"
)

// Store is how the agent's store fares.
type Store struct {
	// Errors is how many calls failed, by kind, in this life of the agent.
	Errors map[string]int64
	// Damaged says that it was found damaged in this life.
	Damaged bool
	// SetAside is how many damaged files that were set aside lie beside it.
	SetAside int
}

// SetStore says how the store fares.
func (e *Exporter) SetStore(s Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store == nil || e.store.Damaged != s.Damaged || e.store.SetAside != s.SetAside || !maps.Equal(e.store.Errors, s.Errors) {
		e.store, e.dirty = &s, true
	}
}

func (e *Exporter) emitStore(s *building) {
	if e.store == nil {
		return
	}
	s.series(storeDamaged, truth(e.store.Damaged))
	s.series(storeSetAside, float64(e.store.SetAside))
	for _, kind := range slices.Sorted(maps.Keys(e.store.Errors)) {
		s.series(storeErrors, float64(e.store.Errors[kind]), kind)
	}
}
