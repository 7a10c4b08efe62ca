package release

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// Remind tells once of each request that waits and whose time is over soon; once, too,
// over restarts and take-overs.
func (s *Service) Remind(ctx context.Context) error {
	list, err := s.store.ListRequests(ctx, []locksteward.RequestState{locksteward.RequestPending}, "", -1)
	if err != nil {
		return err
	}
	at, before := s.now(), s.settings.Load().cfg.RemindBefore
	open := map[string]bool{}
	for _, r := range list {
		if at.Before(r.ExpiresAt.Add(-before)) || !at.Before(r.ExpiresAt) || !s.mine(r.Evidence.Target) {
			continue
		}
		open[r.ID] = true
		if !s.followUps.wasReported(r.ID) {
			reminded, err := s.reminded(ctx, r.ID)
			if err != nil {
				return err
			}
			if reminded {
				s.followUps.tell(r.ID)
				continue
			}
			left := r.ExpiresAt.Sub(at).Round(time.Second)
			m := locksteward.NewMessage("release.reminder", actWord(r.Evidence.Act), left.String())
			_, err = s.update(ctx, r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
				if r.State.Final() {
					return nil, nil // decided on meanwhile
				}
				e := entry(at, AgentName, ActionRemind, *r, "", detail{Sentence: english(m)})
				return []locksteward.Entry{notify(e, locksteward.EventReminder, *r, m)}, nil
			})
			if err != nil {
				return err
			}
			s.followUps.tell(r.ID)
		}
	}
	s.followUps.forgetReported(open)
	return nil
}

func (a *followUps) wasReported(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reminded[id]
}

func (a *followUps) tell(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reminded == nil {
		a.reminded = map[string]bool{}
	}
	a.reminded[id] = true
}

func (a *followUps) forgetReported(open map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.reminded {
		if !open[id] {
			delete(a.reminded, id)
		}
	}
}
