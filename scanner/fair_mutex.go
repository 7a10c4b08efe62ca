package scanner

import "sync"

// fairMutex is a mutex that is passed on in the order in which it was asked for: who
// holds it for long, and gives way now and then, lets all in that have come meanwhile.
// A sync.Mutex would mostly be taken again by whoever has just let it go. The zero
// value is free.
type fairMutex struct {
	mu   sync.Mutex
	busy bool
	line []chan struct{}
}

// Lock waits for a turn.
func (t *fairMutex) Lock() {
	t.mu.Lock()
	if !t.busy {
		t.busy = true
		t.mu.Unlock()
		return
	}
	next := make(chan struct{})
	t.line = append(t.line, next)
	t.mu.Unlock()
	<-next
}

// Unlock ends a turn.
func (t *fairMutex) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) == 0 {
		t.busy, t.line = false, nil
		return
	}
	close(t.line[0])
	t.line = t.line[1:]
}

// giveWay lets those have their turns that wait now, and goes on.
func (t *fairMutex) yield() {
	t.mu.Lock()
	nobody := len(t.line) == 0
	t.mu.Unlock()
	if nobody {
		return
	}
	t.Unlock()
	t.Lock()
}
