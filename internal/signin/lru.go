package signin

import (
	"container/list"
	"sync"
)

// lru keeps the values that were used last, so many at most.
type lru[V any] struct {
	mu       sync.Mutex
	capacity int
	order    *list.List // of *row, the one used last in front
	rows     map[string]*list.Element
}

type lruEntry[V any] struct {
	key   string
	value V
}

func newLRU[V any](most int) *lru[V] {
	return &lru[V]{capacity: most, order: list.New(), rows: map[string]*list.Element{}}
}

func (t *lru[V]) get(key string) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.rows[key]
	if !ok {
		var none V
		return none, false
	}
	t.order.MoveToFront(at)
	return at.Value.(*lruEntry[V]).value, true
}

func (t *lru[V]) put(key string, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(key, value)
}

func (t *lru[V]) keep(key string, value V) {
	if at, ok := t.rows[key]; ok {
		at.Value.(*lruEntry[V]).value = value
		t.order.MoveToFront(at)
		return
	}
	t.rows[key] = t.order.PushFront(&lruEntry[V]{key, value})
	if t.order.Len() > t.capacity {
		last := t.order.Back()
		delete(t.rows, last.Value.(*lruEntry[V]).key)
		t.order.Remove(last)
	}
}

// getOrAdd returns the value of a key, which fresh makes where there is none.
func (t *lru[V]) getOrAdd(key string, fresh func() V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.rows[key]; ok {
		t.order.MoveToFront(at)
		return at.Value.(*lruEntry[V]).value
	}
	value := fresh()
	t.keep(key, value)
	return value
}

func (t *lru[V]) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.rows[key]; ok {
		delete(t.rows, key)
		t.order.Remove(at)
	}
}
