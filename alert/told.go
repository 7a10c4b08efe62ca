package alert

import "sync"

// told is what a receiver is known to know of findings, since the start of the
// agent. What is not known counts as told: a resolve too many closes nothing.
type told struct {
	mu     sync.Mutex
	fires  map[string]bool // by ordering: a fire arrived, or (false) certainly did not
	misses map[string]int  // by message: attempts that certainly did not arrive
}

// never says that a fire was given up and that none arrived.
func (t *told) never(ordering string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	arrived, known := t.fires[ordering]
	return known && !arrived
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
	switch {
	case s.resolves:
		delete(t.fires, m.Ordering)
	case s.fires:
		t.set(m.Ordering, true)
	}
}

// lost notes that a message is given up.
func (t *told) lost(m Message, s subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Attempts of another process may have arrived.
	certain := t.misses[m.ID] == m.Attempts
	delete(t.misses, m.ID)
	switch {
	case s.resolves:
		delete(t.fires, m.Ordering)
	case s.fires && s.first && certain && !t.fires[m.Ordering]:
		t.set(m.Ordering, false)
	}
}

func (t *told) forget(ordering string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.fires, ordering)
}

func (t *told) set(ordering string, arrived bool) {
	if t.fires == nil {
		t.fires = map[string]bool{}
	}
	t.fires[ordering] = arrived
}
