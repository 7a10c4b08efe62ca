package backend

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/signin"
	"github.com/locksteward/locksteward/store"
)

// sessions is the store as the console keeps who is signed in.
type sessions struct{ store *store.Store }

func (s sessions) SaveSession(ctx context.Context, n signin.Session, entries ...locksteward.Entry) error {
	return stored(s.store.SaveSession(ctx, store.Session(n), entries...))
}

func (s sessions) LoadSession(ctx context.Context, digest string) (signin.Session, error) {
	n, err := s.store.LoadSession(ctx, digest)
	if errors.Is(err, locksteward.ErrNotFound) {
		return signin.Session{}, err
	}
	return signin.Session(n), stored(err)
}

func (s sessions) TouchSession(ctx context.Context, digest string, seen time.Time) error {
	return stored(s.store.TouchSession(ctx, digest, seen))
}

func (s sessions) EndSession(ctx context.Context, digest string, entries ...locksteward.Entry) error {
	return stored(s.store.EndSession(ctx, digest, entries...))
}

func (s sessions) AppendEntries(ctx context.Context, entries ...locksteward.Entry) error {
	return stored(s.store.AppendEntries(ctx, entries...))
}
