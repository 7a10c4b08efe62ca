package release

import (
	"context"

	"github.com/locksteward/locksteward"
)

// update changes a request in one transaction with what alter returns, and
// announces that once it is written.
func (s *Service) update(ctx context.Context, id string, alter func(*locksteward.Request) (change, error)) (locksteward.Request, error) {
	var done change
	r, err := s.store.UpdateRequest(ctx, id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		var err error
		done, err = alter(r) // may run again if the store tries again
		return done.lines(), err
	})
	if err != nil {
		return locksteward.Request{}, err
	}
	s.announce(done.events)
	return r, nil
}

// create stores a new request with what goes with it; onOpen is asked about one
// that is open for the same lock.
func (s *Service) create(ctx context.Context, r locksteward.Request, with change,
	onOpen func(open *locksteward.Request) (change, error),
) error {
	var ended change
	err := s.store.CreateRequest(ctx, r, with.lines(), func(open *locksteward.Request) ([]locksteward.Entry, error) {
		var err error
		ended, err = onOpen(open)
		return ended.lines(), err
	})
	if err != nil {
		return err
	}
	s.announce(ended.events)
	s.announce(with.events)
	return nil
}

// note writes what is about no change of a request.
func (s *Service) note(ctx context.Context, with change) error {
	if err := s.store.AppendEntries(ctx, with.lines()...); err != nil {
		return err
	}
	s.announce(with.events)
	return nil
}
