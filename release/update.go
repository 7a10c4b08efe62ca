package release

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// update changes a request in one transaction with the entries that alter returns.
func (s *Service) update(ctx context.Context, id string, alter func(*locksteward.Request) ([]locksteward.Entry, error)) (locksteward.Request, error) {
	return s.store.DecideRequest(ctx, id, func(r *locksteward.Request, _ acts) ([]locksteward.Entry, error) { return alter(r) })
}

// acts are the requests that are approved or being carried out, and those that were
// carried out or may have been since a time, as the transaction sees them that asks.
type acts = func(since time.Time) ([]locksteward.Request, error)

// recent is [Store.CountRecent] as a transaction sees it.
type recent = func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error)
