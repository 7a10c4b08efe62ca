// Package lockhistory keeps what happened to each lock: how its holds began and ended, and which findings it had. A
// [Writer] writes events to the store in the background; [Events] makes the history that people read of them.
package lockhistory

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

const (
	// writeEvery is the time between two writes, retryAfter the time after a write that failed: each attempt at a locked
	// file delays more important writes.
	writeEvery = time.Second
	retryAfter = 10 * time.Second
	// maxBatch is the number of events in one write, and so the most in a second; maxQueue is the number that may wait
	// while the store does not work.
	maxBatch = 2000
	maxQueue = 20_000
	// maxAge and maxRows bound the history in the store; pruneAfter is the number of events written between two prunes.
	maxAge     = 30 * 24 * time.Hour
	maxRows    = 200_000
	pruneAfter = 20_000
	// trimAfter is the number of events of one lock that are written before its oldest are deleted; maxCounts is the
	// number of locks whose events are counted for that.
	trimAfter = 25
	maxCounts = 50_000
	// drainTimeout bounds Drain and the writes after the end of Run's context.
	drainTimeout = 5 * time.Second
)

// Store is the part of [store.Store] that a Writer uses.
type Store interface {
	SaveLockEvents(ctx context.Context, target string, events []store.LockEvent) error
	TrimLockEvents(ctx context.Context, target string, locks []scanner.HistoryKey) error
	PruneLockEvents(ctx context.Context, before time.Time, rows int64, firstKind string) (int64, error)
}

// A Writer writes events to the store in batches. Its methods may be called concurrently.
type Writer struct {
	log    *zap.Logger
	store  Store
	drains chan chan struct{}
	ended  chan struct{} // closed at the end of Run

	mu      sync.Mutex // guards queue and dropped
	queue   []entry
	dropped int64

	// Only Run uses these.
	failing bool
	failed  time.Time
	written int64 // since the last prune
	counts  map[lock]int
}

// entry is one event of a target.
type entry struct {
	target string
	event  Event
}

type lock struct {
	target string
	scanner.HistoryKey
}

// NewWriter returns a Writer; nothing is written before Run.
func NewWriter(log *zap.Logger, st Store) *Writer {
	return &Writer{log: log, store: st, drains: make(chan chan struct{}), ended: make(chan struct{})}
}

// Enqueue adds events of a target. It never blocks: events beyond the size of the queue are dropped and counted.
func (w *Writer) Enqueue(target string, events ...Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, e := range events {
		if len(w.queue) >= maxQueue {
			w.dropped += int64(len(events) - i)
			return
		}
		w.queue = append(w.queue, entry{target, e})
	}
}

// Run writes events until ctx ends, and then those that are left, for up to 5 s.
func (w *Writer) Run(ctx context.Context) {
	defer close(w.ended)
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.drain(ctx)
			return
		case done := <-w.drains:
			w.drain(ctx)
			close(done)
		case <-tick.C:
			if w.failing && time.Since(w.failed) < retryAfter {
				continue
			}
			w.flush(ctx)
		}
	}
}

// Drain writes the events that are queued, for up to 5 s. Run must be running, or have ended.
func (w *Writer) Drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	done := make(chan struct{})
	select {
	case w.drains <- done:
	case <-w.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (w *Writer) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for w.flush(ctx) {
	}
}

// flush writes one batch and reports whether there is more to write now.
func (w *Writer) flush(ctx context.Context) (more bool) {
	w.mu.Lock()
	batch := w.queue[:min(len(w.queue), maxBatch)]
	dropped := w.dropped
	w.dropped = 0
	w.mu.Unlock()
	if dropped > 0 {
		w.log.Warn("events are missing in the history of locks: more arrive than are written", zap.Int64("events", dropped))
	}
	if len(batch) == 0 {
		return false
	}
	n, err := w.write(ctx, batch)
	w.mu.Lock()
	w.queue = w.queue[n:]
	more = len(w.queue) > 0
	if !more {
		w.queue = nil // frees the memory of a long queue
	}
	w.mu.Unlock()
	switch {
	case err != nil && !w.failing:
		w.log.Warn("the history of locks is not written; trying again", zap.Error(err))
	case err == nil && w.failing:
		w.log.Info("the history of locks is written again")
	}
	if w.failing = err != nil; w.failing {
		w.failed = time.Now()
	}
	if w.written += int64(n); err == nil && w.written >= pruneAfter {
		w.written = 0
		if _, err := w.Prune(ctx); err != nil {
			w.log.Warn("old events of locks are not deleted", zap.Error(err))
		}
	}
	return more && err == nil
}

// write writes the events of each target in their order, and returns how many of the batch are done.
func (w *Writer) write(ctx context.Context, batch []entry) (int, error) {
	for done := 0; done < len(batch); {
		target, end := batch[done].target, done
		var events []store.LockEvent
		for ; end < len(batch) && batch[end].target == target; end++ {
			e := batch[end].event
			raw, _ := json.Marshal(e.details) // strings and numbers cannot fail
			e.Event = string(raw)
			events = append(events, e.LockEvent)
		}
		switch err := w.store.SaveLockEvents(ctx, target, events); {
		case errors.Is(err, store.ErrLeaseLost):
			done = end // another replica writes the history of this target
			continue
		case err != nil:
			return done, err
		}
		done = end
		if err := w.store.TrimLockEvents(ctx, target, w.toTrim(target, events)); err != nil {
			return done, err
		}
	}
	return len(batch), nil
}

// toTrim counts events and returns the locks of which many were written.
func (w *Writer) toTrim(target string, events []store.LockEvent) []scanner.HistoryKey {
	if w.counts == nil || len(w.counts) > maxCounts {
		w.counts = map[lock]int{} // locks with many events reach the bound again
	}
	var out []scanner.HistoryKey
	for _, e := range events {
		at := lock{target, scanner.HistoryKey{DB: e.DB, Key: e.Key}}
		if w.counts[at]++; w.counts[at] == trimAfter {
			out = append(out, at.HistoryKey)
			w.counts[at] = 0
		}
	}
	return out
}

// Prune deletes events that are too old or too many, ordinary releases first, and returns how many.
func (w *Writer) Prune(ctx context.Context) (int64, error) {
	return w.store.PruneLockEvents(ctx, time.Now().Add(-maxAge), maxRows, api.EventReleased)
}
