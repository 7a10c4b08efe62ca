package backend

import (
	"context"
	"slices"

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
