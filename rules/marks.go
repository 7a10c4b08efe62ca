package rules

import (
	"slices"
	"strings"
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
// changed: a list of locks does not wait until 100,000 of them are judged.
type marks struct {
	mu sync.RWMutex
	of map[string]map[LockKey]*Mark // by target
	// same are marks by their status and rules: a storm has few different ones.
	same map[string]*Mark
}

// maxSame bounds how many different marks are found again.
const maxSame = 1024

// note takes over what the table has of the keys of some findings.
func (m *marks) note(t table, changed []*tracked) {
	if len(changed) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, tr := range changed {
		if tr.key == "" {
			continue
		}
		s := tr.subject()
		k, now := LockKey{DB: s.db, Key: s.key}, m.markOf(t, s)
		if now == nil {
			if delete(m.of[s.target], k); len(m.of[s.target]) == 0 {
				delete(m.of, s.target)
			}
			continue
		}
		if m.of[s.target] == nil {
			if m.of == nil {
				m.of = map[string]map[LockKey]*Mark{}
			}
			m.of[s.target] = map[LockKey]*Mark{}
		}
		m.of[s.target][k] = now
	}
}

// markOf is what the findings on a key come to; nil if there are none. The caller
// holds m.mu.
func (m *marks) markOf(t table, s subject) *Mark {
	var one Mark
	var few [4]string
	rules := few[:0]
	for tr := range t.of(s) {
		if one.Status != locksteward.StatusFiring {
			one.Status = tr.kind.status
		}
		rules = append(rules, tr.kind.rule)
	}
	if len(rules) == 0 {
		return nil
	}
	slices.Sort(rules)
	rules = slices.Compact(rules)
	id := string(one.Status) + " " + strings.Join(rules, " ")
	if same := m.same[id]; same != nil {
		return same
	}
	if m.same == nil || len(m.same) >= maxSame {
		m.same = map[string]*Mark{}
	}
	one.Rules = slices.Clone(rules)
	m.same[id] = &one
	return &one
}

// MarkOf returns what the findings on one lock come to; the zero Mark where
// there are none. It does not wait for an evaluation.
func (e *Engine) MarkOf(target string, db int, key string) Mark {
	e.marks.mu.RLock()
	defer e.marks.mu.RUnlock()
	if m := e.marks.of[target][LockKey{DB: db, Key: key}]; m != nil {
		return *m
	}
	return Mark{}
}
