package lock_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// recorder keeps the events of a client.
type recorder struct {
	mu   sync.Mutex
	list []lock.Event
}

func (r *recorder) add(e lock.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

// of returns the events of one kind so far.
func (r *recorder) of(kind lock.EventKind) []lock.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.list), func(e lock.Event) bool { return e.Kind != kind })
}

// wait waits for n events of a kind.
func (r *recorder) wait(t *testing.T, kind lock.EventKind, n int, within time.Duration) {
	t.Helper()
	testredis.Eventually(t, within, func() bool { return len(r.of(kind)) >= n }, "want event "+string(kind))
}
