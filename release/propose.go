package release

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Propose opens a request in the agent's own name if a rule of the class's
// dead_when is among those that fire on lock. It returns nil without an error
// when there is nothing to propose: no such rule, a class or format that does
// not allow a release or leaves it to people (source.Limits), no
// credentials, a request open already, or one about this hold that people denied
// or let expire. Its refusals are not audited, since it is asked in every sweep.
func (s *Service) Propose(ctx context.Context, lock locksteward.Lock, firing []string) (*locksteward.Request, error) {
	return s.propose(ctx, lock, firing, "", false)
}

// propose is Propose with what is known of the holder's death; "" asks the
// reader of locks. settledNow says that the lock has stood untouched for some
// sweeps: then the agent's own request about an earlier state of it gives way,
// which for one that is renewed all the time would be a request each time.
func (s *Service) propose(ctx context.Context, lock locksteward.Lock, firing []string, proof locksteward.Proof, settledNow bool) (*locksteward.Request, error) {
	_ = s.pauses.load(ctx) // refusePaused refuses while it is not known
	if s.refusePaused() != nil {
		return nil, nil
	}
	releaser, err := s.releaser(lock.Target)
	if err != nil {
		return nil, nil //nolint:nilerr // nothing to propose without the means
	}
	c, err := s.releasable(lock)
	if err != nil {
		return nil, nil //nolint:nilerr // policy says no; that is no failure
	}
	if s.limits(freeze(lock, nil)).Decision != "" {
		return nil, nil // no rule decides on such a lock
	}
	dead := intersect(c.DeadWhen, firing)
	if len(dead) == 0 {
		return nil, nil
	}
	earlier, err := s.store.RequestsForKey(ctx, lock.Target, lock.DB, lock.Key, 20)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(earlier, func(r locksteward.Request) bool { return settled(r, lock) && !(settledNow && stale(r, lock)) }) {
		return nil, nil
	}
	reason := "proposed by the agent: " + strings.Join(dead, ", ") + " fires, and dead_when of class " + c.Name + " says so"
	r, err := s.newRequest(AgentName, reason, lock, firing, c, ask{})
	if err != nil || whyNot(ctx, releaser, r) != nil {
		return nil, nil //nolint:nilerr // policy or format says no; that is no failure
	}
	if proof != "" && r.Evidence.Proof == "" {
		r.Evidence.Proof = proof
		r.EvidenceHash = EvidenceHash(r.Evidence)
	}
	list := []locksteward.Request{r}
	if err := s.open(ctx, ActionPropose, list); err != nil {
		if errors.Is(err, locksteward.ErrConflict) {
			return nil, nil // somebody asked meanwhile
		}
		return nil, err
	}
	return &list[0], nil
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

// stale says whether a request of the agent's own that nobody said a word on is
// about an earlier state of the lock.
func stale(r locksteward.Request, lock locksteward.Lock) bool {
	return r.State == locksteward.RequestPending && r.Requester == AgentName && len(r.Decisions) == 0 &&
		len(source.Differences(r.Evidence, freeze(lock, nil))) > 0
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
