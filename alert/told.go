package alert

import (
	"slices"
	"sync"
)

// told is what a receiver is known to know of findings, since the start of the
// agent. What is not known counts as told: a resolve too many closes nothing.
type told struct {
	mu     sync.Mutex
	fires  map[string]bool // by fingerprint: a fire arrived, or (false) certainly did not
	misses map[string]int  // by message: attempts that certainly did not arrive
}

// never says that a message only ends findings of which every fire was given up and
// none arrived.
func (t *told) never(s subject) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(s.resolves) > 0 && len(s.fires) == 0 && len(s.raises) == 0 && !slices.ContainsFunc(s.resolves, func(id string) bool {
		arrived, known := t.fires[id]
		return arrived || !known
	})
}

// miss notes why an attempt failed.
func (t *told) miss(id string, why Reason) {
	if !why.missed() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.misses == nil {
		t.misses = map[string]int{}
	}
	t.misses[id]++
}

func (t *told) arrived(m Message, s subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.misses, m.ID)
	for _, id := range slices.Concat(s.fires, s.raises) {
		t.set(id, true)
	}
	t.end(s)
}

// lost notes that a message is given up.
func (t *told) lost(m Message, s subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Attempts of another process may have arrived.
	certain := t.misses[m.ID] == m.Attempts
	delete(t.misses, m.ID)
	for _, id := range s.fires {
		if certain && !t.fires[id] {
			t.set(id, false)
		}
	}
	t.end(s)
}

// reset forgets everything: another process may have told more since.
func (t *told) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fires, t.misses = nil, nil
}

// forget forgets the findings that a message ends.
func (t *told) forget(s subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(s)
}

func (t *told) end(s subject) {
	for _, id := range s.resolves {
		delete(t.fires, id)
	}
}

func (t *told) set(id string, arrived bool) {
	if t.fires == nil {
		t.fires = map[string]bool{}
	}
	t.fires[id] = arrived
}
