package exporter

import (
	"maps"
	"slices"
)

// TargetSource is where targets stand besides the list of the configuration.
type TargetSource struct {
	// Name is the pattern of files or the DNS name.
	Name string
	// Up says that what it has now is in use; else what it had before is.
	Up bool
}

// SetTargetSources says how all sources of targets stand.
func (e *Exporter) SetTargetSources(list []TargetSource) {
	// One name may be of two entries: it is up if both are.
	byName := map[string]TargetSource{}
	for _, s := range list {
		if was, twice := byName[s.Name]; twice {
			s.Up = s.Up && was.Up
		}
		byName[s.Name] = s
	}
	sources := make([]TargetSource, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		sources = append(sources, byName[name])
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.sources, sources) {
		e.sources, e.dirty = sources, true
	}
}

func (e *Exporter) emitSources(s *building) {
	for _, one := range e.sources {
		s.series(targetSourceUp, truth(one.Up), one.Name)
	}
}
