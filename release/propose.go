package release

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// Propose opens a request in the agent's own name if a rule of the class's
// dead_when is among those that fire on lock. It returns nil without an error
// when there is nothing to propose: no such rule, a class or dialect that does
// not allow a release, no credentials, a request open already, or one about this
// hold that people denied or let expire. Its refusals are not audited, since it
// is asked in every sweep.
func (s *Service) Propose(ctx context.Context, lock locksteward.Lock, firing []string) (*locksteward.Request, error) {
	if s.killed() != nil {
		return nil, nil
	}
	if _, err := s.executor(lock.Target); err != nil {
		return nil, nil //nolint:nilerr // nothing to propose without the means
	}
	c, err := s.releasable(lock)
	if err != nil {
		return nil, nil //nolint:nilerr // policy says no; that is no failure
	}
	dead := intersect(c.DeadWhen, firing)
	if len(dead) == 0 {
		return nil, nil
	}
	earlier, err := s.store.RequestsForKey(ctx, lock.Target, lock.DB, lock.Key, 20)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(earlier, func(r locksteward.Request) bool { return settled(r, lock) }) {
		return nil, nil
	}
	r := s.newRequest(AgentName, "proposed by the agent: "+strings.Join(dead, ", ")+" fires, and dead_when of class "+c.Name+" says so", lock, firing)
	if err := s.open(ctx, ActionPropose, r); err != nil {
		if errors.Is(err, locksteward.ErrConflict) {
			return nil, nil // somebody asked meanwhile
		}
		return nil, err
	}
	return &r, nil
}

// settled says whether an earlier request leaves nothing to propose for lock.
func settled(r locksteward.Request, lock locksteward.Lock) bool {
	switch {
	case !r.State.Final():
		return true
	case !sameHold(r.Evidence, lock):
		return false
	case r.State == locksteward.RequestFailed:
		return false // people wanted it and nothing was touched
	case r.State == locksteward.RequestChanged:
		return r.Evidence.ExpireAt == lock.ExpireAt
	default:
		return true
	}
}

// intersect returns what is in both lists, sorted.
func intersect(a, b []string) []string {
	var out []string
	for _, x := range a {
		if slices.Contains(b, x) && !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}
