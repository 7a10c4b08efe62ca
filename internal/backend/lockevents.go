package backend

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/internal/lockhistory"
)

// LockEvents returns what happened to one lock, newest first: what the store has of it, and the hold that has not ended.
func (b *Backend) LockEvents(ctx context.Context, target string, db int, key string, limit int) ([]api.LockEvent, error) {
	out, err := forwardRead(ctx, b, callEvents, lockInput{target, db, key, limit})
	return out.V, err
}

func (b *Backend) lockEvents(ctx context.Context, target string, db int, key string, limit int) ([]api.LockEvent, error) {
	w, err := b.deps.Targets.Get(target)
	if err != nil {
		return nil, err
	}
	if err := w.OwnDB(db); err != nil {
		return nil, err
	}
	rows, err := b.deps.Store.LockEvents(ctx, target, db, key, limit)
	if err != nil {
		return nil, stored(err)
	}
	requests, err := b.deps.Store.RequestsForKey(ctx, target, db, key, limit)
	if err != nil {
		return nil, stored(err)
	}
	out := lockhistory.Events(rows, requests)
	if l, ok := w.Table().Get(db, key); ok {
		out = append(out, lockhistory.Current(l)...)
	}
	slices.SortStableFunc(out, func(a, b api.LockEvent) int { return b.At.Compare(a.At) })
	return out[:min(limit, len(out))], nil
}

// firedAge is for how long what fired is remembered: pages of many people ask for the same.
const firedAge = 5 * time.Second

// fired remembers what fired lately. The zero value is ready.
type fired struct {
	mu     sync.Mutex // guards what follows; one caller reads, others wait for what it read
	events []api.LockEvent
	since  time.Time
	limit  int
	read   time.Time
}

// Fired returns the findings that fired since a time, newest first, on all targets.
func (b *Backend) Fired(ctx context.Context, since time.Time, limit int) ([]api.LockEvent, error) {
	f := &b.fired
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.read) > firedAge || since.Before(f.since) || f.limit != limit {
		rows, err := b.deps.Store.FiredSince(ctx, since, limit)
		if err != nil {
			return nil, stored(err)
		}
		f.events, f.since, f.limit, f.read = lockhistory.Fired(rows), since, limit, now
	}
	end := slices.IndexFunc(f.events, func(e api.LockEvent) bool { return e.At.Before(since.Truncate(time.Millisecond)) })
	if end < 0 {
		end = len(f.events)
	}
	return slices.Clone(f.events[:end]), nil
}
