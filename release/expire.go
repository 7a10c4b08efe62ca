package release

import (
	"context"
	"errors"
	"time"

	"github.com/locksteward/locksteward"
)

// due says whether the time of a request that waits is over.
func due(r locksteward.Request, at time.Time) bool {
	switch r.State {
	case locksteward.RequestPending:
		return !at.Before(r.ExpiresAt)
	case locksteward.RequestApproved:
		return !at.Before(r.ApprovedUntil)
	default:
		return false
	}
}

// expire ends a request whose time is over.
func (s *Service) expire(r *locksteward.Request, at time.Time) ([]locksteward.Entry, error) {
	waited := locksteward.NewMessage("release.expired")
	if r.State == locksteward.RequestApproved {
		waited = locksteward.NewMessage("release.expired-approved")
	}
	if err := advance(r, locksteward.RequestExpired); err != nil {
		return nil, err
	}
	r.FinishedAt, r.Outcome = at, english(waited)
	e := entry(at, AgentName, ActionExpire, *r, "", detail{Sentence: r.Outcome})
	return []locksteward.Entry{notify(e, locksteward.EventFinal, *r, waited)}, nil
}

// ExpireDue ends the requests whose time is over and returns how many those
// were.
func (s *Service) ExpireDue(ctx context.Context) (int, error) {
	open, err := s.store.ListRequests(ctx, []locksteward.RequestState{locksteward.RequestPending, locksteward.RequestApproved}, "", -1)
	if err != nil {
		return 0, err
	}
	var errs []error
	n := 0
	for _, r := range open {
		at := s.now().UTC().Truncate(time.Microsecond)
		if !due(r, at) || !s.mine(r.Evidence.Target) {
			continue
		}
		changed := false
		r, err := s.update(ctx, r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
			if changed = false; !due(*r, at) {
				return nil, nil // decided meanwhile
			}
			changed = true
			return s.expire(r, at)
		})
		switch {
		case err != nil:
			errs = append(errs, err)
		case changed:
			n++
			s.final(r)
		}
	}
	return n, errors.Join(errs...)
}
