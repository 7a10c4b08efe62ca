package push

import (
	"sync"

	"github.com/locksteward/locksteward/lock/record"
)

// join returns what remains of two messages to a waiter. The zero value is "try again".
func join(m, old record.Message) record.Message {
	if m.Nonce == "" {
		m.Fence, m.Nonce = old.Fence, old.Nonce
	}
	m.Before = min(m.Before, old.Before)
	return m
}

// Waiter is one call that waits for a lock.
type Waiter struct {
	// C has what was not received yet, as one message. Only one goroutine may receive.
	C <-chan record.Message

	id   string
	mu   sync.Mutex          // excludes senders of different channels
	slot chan record.Message // for one
}

// NewWaiter returns a waiter with that acquisition id.
func NewWaiter(id string) *Waiter {
	slot := make(chan record.Message, 1)
	return &Waiter{C: slot, id: id, slot: slot}
}

// notify joins m with what w has not received yet. It never blocks: with w.mu locked the
// slot stays free once it is empty.
func (w *Waiter) notify(m record.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case old := <-w.slot:
		m = join(m, old)
	default:
	}
	w.slot <- m
}

// Dispatcher hands the messages on the process's own channel to the waiters that they are
// meant for. Messages for waiters that do not listen yet are kept. The zero value is
// usable. It is safe for concurrent use.
type Dispatcher struct {
	mu      sync.Mutex
	waiters map[string]*Waiter
	early   map[string]record.Message
}

// maxEarly is how many messages are kept for waiters that do not listen yet; a waiter
// whose message is dropped finds out at its next attempt.
const maxEarly = 1024

// Listen makes w receive its messages until the returned function is called.
func (d *Dispatcher) Listen(w *Waiter) (leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiters == nil {
		d.waiters = map[string]*Waiter{}
	}
	d.waiters[w.id] = w
	if early, ok := d.early[w.id]; ok {
		delete(d.early, w.id)
		w.notify(early)
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiters, w.id)
		delete(d.early, w.id)
	}
}

// Dispatch hands m to the waiter with that acquisition id.
func (d *Dispatcher) Dispatch(id string, m record.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.waiters[id]; w != nil {
		w.notify(m)
		return
	}
	if d.early == nil || len(d.early) >= maxEarly {
		d.early = map[string]record.Message{}
	}
	if old, ok := d.early[id]; ok {
		m = join(m, old)
	}
	d.early[id] = m
}

// Wake notifies all waiters: a message may have been missed.
func (d *Dispatcher) Wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.waiters {
		w.notify(record.Message{})
	}
}

// Len returns how many waiters listen, and for how many others a message is kept.
func (d *Dispatcher) Len() (waiters, early int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiters), len(d.early)
}
