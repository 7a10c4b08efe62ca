package targets

import (
	"slices"
	"sync"

	"github.com/locksteward/locksteward"
)

// maxResolved is the number of resolved findings that are remembered.
const maxResolved = 2000

// Resolved remembers the findings that were resolved last, so that the link of an alert still shows its finding.
type Resolved struct {
	mu    sync.Mutex // guards all fields
	by    map[string]locksteward.Finding
	order []string // fingerprints, the oldest first
}

func (e *Resolved) add(transitions []locksteward.Transition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range transitions {
		id := t.Finding.Fingerprint()
		if _, known := e.by[id]; known {
			delete(e.by, id)
			e.order = slices.DeleteFunc(e.order, func(other string) bool { return other == id })
		}
		if t.Finding.Status != locksteward.StatusResolved {
			continue
		}
		if e.by == nil {
			e.by = map[string]locksteward.Finding{}
		}
		if len(e.order) == maxResolved {
			delete(e.by, e.order[0])
			e.order = e.order[1:]
		}
		e.by[id] = t.Finding
		e.order = append(e.order, id)
	}
}

// Get returns a finding that was resolved, unless that is long ago.
func (e *Resolved) Get(fingerprint string) (locksteward.Finding, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, ok := e.by[fingerprint]
	return f, ok
}
