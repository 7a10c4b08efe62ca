package signin

import (
	"container/list"
	"sync"
)

// table keeps the values that were used last, so many at most.
type table[V any] struct {
	mu    sync.Mutex
	most  int
	order *list.List // of *row, the one used last in front
	rows  map[string]*list.Element
}

type row[V any] struct {
	key   string
	value V
}

func newTable[V any](most int) *table[V] {
	return &table[V]{most: most, order: list.New(), rows: map[string]*list.Element{}}
}

func (t *table[V]) get(key string) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.rows[key]
	if !ok {
		var none V
		return none, false
	}
	t.order.MoveToFront(at)
	return at.Value.(*row[V]).value, true
}

func (t *table[V]) put(key string, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(key, value)
}

func (t *table[V]) keep(key string, value V) {
	if at, ok := t.rows[key]; ok {
		at.Value.(*row[V]).value = value
		t.order.MoveToFront(at)
		return
	}
	t.rows[key] = t.order.PushFront(&row[V]{key, value})
	if t.order.Len() > t.most {
		last := t.order.Back()
		delete(t.rows, last.Value.(*row[V]).key)
		t.order.Remove(last)
	}
}

// having returns the value of a key, which fresh makes where there is none.
func (t *table[V]) having(key string, fresh func() V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.rows[key]; ok {
		t.order.MoveToFront(at)
		return at.Value.(*row[V]).value
	}
	value := fresh()
	t.keep(key, value)
	return value
}

func (t *table[V]) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.rows[key]; ok {
		delete(t.rows, key)
		t.order.Remove(at)
	}
}
