package release

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
)

// BreakGlass asks for a release and decides on it alone, past the class's
// approvals, caps and pauses of automatic releases, for one who has [RoleBreakGlass]. All receivers
// are notified, and nothing silences that; without a receiver it is refused. What it
// does not get past: a pause of all releases, a class with release: off, a library that
// cannot be released safely, and the comparison. decision confirms what an approver
// would; its reason and evidence hash are not used.
func (s *Service) BreakGlass(ctx context.Context, actor Actor, in RequestInput, decision Decision) (locksteward.Request, error) {
	id := newID()
	s.enter(id)
	defer s.leave(id)
	r, err := s.breakGlass(ctx, actor, id, in, decision)
	if err != nil {
		return locksteward.Request{}, s.refuse(ctx, actor, ActionBreakGlass, in.Target, in.Key, "", in.Reason, err)
	}
	return s.execute(ctx, r.ID)
}

func (s *Service) breakGlass(ctx context.Context, actor Actor, id string, in RequestInput, decision Decision) (locksteward.Request, error) {
	r, err := s.prepare(ctx, actor, RoleBreakGlass, in, ask{id: id, breakGlass: true, alive: in.HolderAlive, takeOver: in.TakeOver, delay: in.LockDelay})
	if err != nil {
		return locksteward.Request{}, err
	}
	if s.receivers() == 0 {
		return locksteward.Request{}, refused("breaking the glass tells everybody, and no receiver of alerts is configured; add one in alert.receivers, or ask an approver")
	}
	decision.Reason, decision.EvidenceHash = r.Reason, r.EvidenceHash
	if err := mayDecide(r, actor, decision, true); err != nil {
		return locksteward.Request{}, err
	}
	r.Decisions = []locksteward.Decision{{By: actor.Name, Approve: true, Reason: r.Reason, At: r.CreatedAt, EvidenceHash: r.EvidenceHash}}
	if err := advance(&r, locksteward.RequestApproved); err != nil {
		return locksteward.Request{}, err
	}
	r.ApprovedUntil = r.CreatedAt.Add(s.settings.Load().cfg.ApprovalTTL)
	e := entry(r.CreatedAt, actor.Name, ActionBreakGlass, r, r.Reason, created(r))
	return r, s.openDecided(ctx, r, notify(e, locksteward.EventBreakGlass, r, locksteward.NewMessage("release.glass-broken", actor.Name, actWord(r.Evidence.Act))))
}

// openDecided stores a request that is approved already. One that waits for
// others gives way to it; one that is being executed does not.
func (s *Service) openDecided(ctx context.Context, r locksteward.Request, e locksteward.Entry) error {
	var gone *locksteward.Request
	err := s.store.CreateRequest(ctx, r, []locksteward.Entry{e}, func(old *locksteward.Request) ([]locksteward.Entry, error) {
		at := r.CreatedAt
		switch {
		case old.State == locksteward.RequestExecuting:
			return nil, conflict("request %s is being executed on this lock; wait for its outcome", old.ID)
		case due(*old, at):
			gone = old
			return s.expire(old, at)
		}
		if err := advance(old, locksteward.RequestSuperseded); err != nil {
			return nil, err
		}
		gone, old.FinishedAt = old, at.Truncate(time.Microsecond)
		m := locksteward.NewMessage("release.superseded-decided", r.ID)
		old.Outcome = english(m)
		e := entry(at, r.Requester, ActionSupersede, *old, "", detail{By: r.ID, Sentence: old.Outcome})
		return []locksteward.Entry{notify(e, locksteward.EventFinal, *old, m)}, nil
	})
	if err == nil && gone != nil {
		s.final(*gone)
	}
	return err
}
