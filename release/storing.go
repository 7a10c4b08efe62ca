package release

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// update changes a request in one transaction with what alter returns, and
// announces that once it is written.
func (s *Service) update(ctx context.Context, id string, alter func(*locksteward.Request) (change, error)) (locksteward.Request, error) {
	return s.updateBeside(ctx, id, func(r *locksteward.Request, _ acts) (change, error) { return alter(r) })
}

// acts are the requests that are approved or being carried out, and those that were
// carried out or may have been since a time, as the transaction sees them that asks.
type acts = func(since time.Time) ([]locksteward.Request, error)

// recent is [Store.CountRecent] as a transaction sees it.
type recent = func(since time.Time, most int, counts func(locksteward.Request) bool) (int, error)

// updateBeside is update of what depends on other requests.
func (s *Service) updateBeside(ctx context.Context, id string, alter func(*locksteward.Request, acts) (change, error)) (locksteward.Request, error) {
	var done change
	r, err := s.store.DecideRequest(ctx, id, func(r *locksteward.Request, others acts) ([]locksteward.Entry, error) {
		var err error
		done, err = alter(r, others) // may run again if the store tries again
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

// createAll stores new requests that are asked for together, all or none, as create does;
// count comes first and may alter them.
func (s *Service) createAll(ctx context.Context, list []locksteward.Request, count func(recent) error,
	with func(locksteward.Request) change, onOpen func(open *locksteward.Request, by locksteward.Request) (change, error),
) error {
	var events []Event
	err := s.store.CreateRequests(ctx, list,
		func(there recent) error {
			events = nil // may run again if the store tries again
			return count(there)
		},
		func(r locksteward.Request) []locksteward.Entry {
			c := with(r)
			events = append(events, c.events...)
			return c.lines()
		},
		func(open *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error) {
			c, err := onOpen(open, by)
			events = append(events, c.events...)
			return c.lines(), err
		})
	if err != nil {
		return err
	}
	s.announce(events)
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
