package lock

import "sync"

// waiter is one call that waits.
type waiter struct {
	id   string
	wake chan int
}

func newWaiter(id string) *waiter { return &waiter{id: id, wake: make(chan int, 1)} }

// told hands w how many are before it. What it has not read yet gives way to
// what comes sooner. Calls exclude each other.
func (w *waiter) told(before int) {
	select {
	case old := <-w.wake:
		before = min(before, old)
	default:
	}
	w.wake <- before
}

// turns hands what the process is told on its own channel to the waiter it is
// meant for. What comes before the waiter listens is kept for it.
type turns struct {
	mu      sync.Mutex
	waiters map[string]*waiter
	early   map[string]int
}

// maxEarly is how many turns are kept for waiters that do not listen yet; those
// that are forgotten find out at their next beat.
const maxEarly = 1024

// listen makes w hear of its turn until the returned function is called.
func (t *turns) listen(w *waiter) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiters == nil {
		t.waiters = map[string]*waiter{}
	}
	t.waiters[w.id] = w
	if before, ok := t.early[w.id]; ok {
		delete(t.early, w.id)
		w.told(before)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiters, w.id)
		delete(t.early, w.id)
	}
}

func (t *turns) tell(id string, before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiters[id]; w != nil {
		w.told(before)
		return
	}
	if t.early == nil || len(t.early) >= maxEarly {
		t.early = map[string]int{}
	}
	t.early[id] = before
}

// all wakes everybody: something may not have been heard.
func (t *turns) all() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiters {
		w.told(0)
	}
}
