package lock

import (
	"sync"

	"github.com/locksteward/locksteward/lock/record"
)

// word is what a waiter is told: how many are before it, or that it was given
// the lock.
type word struct {
	before int
	grant  record.Grant // its nonce is empty if it was not
}

// waiter is one call that waits.
type waiter struct {
	id   string
	mu   sync.Mutex // excludes senders of different channels, hub's and turns'
	wake chan word  // one slot; only told sends
}

func newWaiter(id string) *waiter { return &waiter{id: id, wake: make(chan word, 1)} }

// told hands w a word. What it has not read yet gives way to what comes sooner. It
// never blocks: with w.mu locked the slot stays free once it is empty.
func (w *waiter) told(now word) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case old := <-w.wake:
		now = sooner(old, now)
	default:
	}
	w.wake <- now
}

// sooner is what remains of two words.
func sooner(old, now word) word {
	now.before = min(now.before, old.before)
	if now.grant.Nonce == "" {
		now.grant = old.grant
	}
	return now
}

// turns hands what the process is told on its own channel to the waiter it is
// meant for. What comes before the waiter listens is kept for it.
type turns struct {
	mu      sync.Mutex
	waiters map[string]*waiter
	early   map[string]word
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
	if early, ok := t.early[w.id]; ok {
		delete(t.early, w.id)
		w.told(early)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiters, w.id)
		delete(t.early, w.id)
	}
}

func (t *turns) tell(id string, now word) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiters[id]; w != nil {
		w.told(now)
		return
	}
	if t.early == nil || len(t.early) >= maxEarly {
		t.early = map[string]word{}
	}
	if old, ok := t.early[id]; ok {
		now = sooner(old, now)
	}
	t.early[id] = now
}

// all wakes everybody: something may not have been heard.
func (t *turns) all() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiters {
		w.told(word{})
	}
}
