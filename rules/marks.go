package rules

import (
	"maps"
	"slices"
	"sync"

	"github.com/locksteward/locksteward"
)

// Mark is what the findings on one lock come to.
type Mark struct {
	// Status is firing if one of them fires, else pending.
	Status locksteward.Status
	// Rules are their rules, sorted, each once; they are shared and must not be
	// changed.
	Rules []string
}

// marks is the short form of the table that lists of locks show. It has a mutex
// of its own, which no evaluation holds for longer than it takes to note what
// changed: whoever lists locks does not wait until 100,000 of them are judged.
type marks struct {
	mu sync.RWMutex
	of map[string]map[LockKey]Mark // by target
}

// note takes over what the table has of some keys.
func (m *marks) note(t table, changed map[subject]struct{}) {
	if len(changed) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range changed {
		if s.key == "" {
			continue
		}
		k, now := LockKey{DB: s.db, Key: s.key}, markOf(t[s])
		if now.Status == "" {
			delete(m.of[s.target], k)
			continue
		}
		if m.of[s.target] == nil {
			if m.of == nil {
				m.of = map[string]map[LockKey]Mark{}
			}
			m.of[s.target] = map[LockKey]Mark{}
		}
		m.of[s.target][k] = now
	}
}

func markOf(list []*tracked) Mark {
	var m Mark
	for _, tr := range list {
		if m.Status != locksteward.StatusFiring {
			m.Status = tr.finding.Status
		}
		m.Rules = append(m.Rules, tr.finding.Rule)
	}
	slices.Sort(m.Rules)
	m.Rules = slices.Compact(m.Rules)
	return m
}

// MarkOf returns what the findings on one lock come to; the zero Mark where
// there are none. It does not wait for an evaluation.
func (e *Engine) MarkOf(target string, db int, key string) Mark {
	e.marks.mu.RLock()
	defer e.marks.mu.RUnlock()
	return e.marks.of[target][LockKey{DB: db, Key: key}]
}

// Marks returns [Engine.MarkOf] of all locks of a target that have findings. It
// does not wait for an evaluation.
func (e *Engine) Marks(target string) map[LockKey]Mark {
	e.marks.mu.RLock()
	defer e.marks.mu.RUnlock()
	return maps.Clone(e.marks.of[target])
}
