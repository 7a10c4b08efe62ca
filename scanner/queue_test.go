package scanner_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/memory"
)

// queued is a source whose waiters are read with the lock.
type queued struct {
	source.Source
	waiters []locksteward.Waiter
}

func (q *queued) Sweep(ctx context.Context, opts source.SweepOptions, sink source.Sink) (*source.Sweep, error) {
	return q.Source.Sweep(ctx, opts, queuedSink{sink, q})
}

type queuedSink struct {
	source.Sink
	q *queued
}

// Found passes each batch twice: of a second reading of a lock nothing is counted twice.
func (s queuedSink) Found(ctx context.Context, part int, b source.Batch) {
	for range 2 {
		for i := range b.Readings {
			b.Readings[i].Waiters = s.q.waiters
		}
		s.Sink.Found(ctx, part, b)
	}
}

// TestWaitersReadWithTheLock: a sweep reports the waiters that came with a reading.
func TestWaitersReadWithTheLock(t *testing.T) {
	t.Parallel()
	store := memory.New(locksteward.NewDigestKey())
	store.Put("lock:a", memory.Hold{Token: "a", Identity: locksteward.IdentityStrong, Expires: time.Now().Add(time.Hour)})
	src := &queued{store.Source(), []locksteward.Waiter{{Key: "lock:a", ID: "second", Since: time.UnixMilli(2)}, {Key: "lock:a", ID: "first", Since: time.UnixMilli(1)}}}
	classes, err := class.NewSet(nil)
	must(t, err)
	s, err := scanner.New(zaptest.NewLogger(t), locksteward.Target{Name: "t"}, src, classes, scanner.Config{NoThrottle: true}, scanner.Options{})
	must(t, err)
	if got := sweep(t, s).Waiters; len(got) != 2 || got[0].ID != "first" || got[1].ID != "second" {
		t.Errorf("waiters %+v", got)
	}
	src.waiters = nil
	if got := sweep(t, s).Waiters; len(got) != 0 {
		t.Errorf("waiters %+v, want none", got)
	}
}
