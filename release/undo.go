package release

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Undo puts back the lock that a request released or took over, with the expiry
// that it had: a new request that names the old one, decided by the approver who
// asks and carried out at once. It is refused when the window is over or the
// format has no undo; the outcome is changed when somebody holds the lock now,
// and already_gone when its own time is over. It works while releases are paused.
func (s *Service) Undo(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error) {
	return s.follow(ctx, actor, id, reason, locksteward.ActUndo, ActionUndo)
}

// Lift ends the lock-delay or the take-over of a request before its time: what
// it set is deleted, and waiters are woken.
func (s *Service) Lift(ctx context.Context, actor Actor, id, reason string) (locksteward.Request, error) {
	return s.follow(ctx, actor, id, reason, locksteward.ActLift, ActionLift)
}

func (s *Service) follow(ctx context.Context, actor Actor, id, reason string, act locksteward.Act, action string) (locksteward.Request, error) {
	next := newID()
	s.enter(next)
	defer s.leave(next)
	of, r, err := s.mayFollow(ctx, actor, id, next, reason, act)
	if err == nil {
		err = s.openDecided(ctx, r, entry(r.CreatedAt, actor.Name, action, r, r.Reason, created(r)))
	}
	if err != nil {
		return locksteward.Request{}, s.refuse(ctx, actor, action, of.Evidence.Target, of.Evidence.Key, id, reason, err)
	}
	return s.execute(ctx, r.ID)
}

func (s *Service) mayFollow(ctx context.Context, actor Actor, id, next, reason string, act locksteward.Act) (of, r locksteward.Request, err error) {
	if err := actor.checkName(); err != nil {
		return of, r, err
	}
	if of, err = s.store.GetRequest(ctx, id); err != nil {
		return of, r, err
	}
	if _, err := s.releaser(of.Evidence.Target); err != nil {
		return of, r, err
	}
	if err := actor.may(RoleApprover); err != nil {
		return of, r, err
	}
	if c, ok := s.settings.Load().classes.Get(of.Evidence.Class); ok {
		if err := actor.mayDecideOn(c); err != nil {
			return of, r, err
		}
	}
	if reason, err = cleanReason(reason); err != nil {
		return of, r, err
	}
	at := s.now().UTC().Truncate(time.Microsecond)
	if act == locksteward.ActUndo {
		if err = mayUndo(of, s.limits(of.Evidence), at); err == nil {
			err = s.notUndone(ctx, of)
		}
	} else if of.State != locksteward.RequestReleased || of.Evidence.Placeholder == 0 {
		err = conflict("no placeholder stands by request %s; only a lock-delay or a take-over that was carried out can be ended", of.ID)
	}
	if err != nil {
		return of, r, err
	}
	r = followUp(of, next, act, actor.Name, reason, at)
	r.Decisions = []locksteward.Decision{{By: actor.Name, Approve: true, Reason: reason, At: at, EvidenceHash: r.EvidenceHash}}
	return of, r, nil
}

func mayUndo(of locksteward.Request, limits source.Limits, at time.Time) error {
	e := of.Evidence
	switch {
	case e.Act != locksteward.ActRelease && e.Act != locksteward.ActTakeOver:
		return conflict("request %s is %s itself and cannot be undone", of.ID, e.Act)
	case of.State != locksteward.RequestReleased:
		return conflict("request %s is %s: it released nothing that could be put back", of.ID, of.State)
	case limits.Undo != "":
		return refused("a %s lock cannot be put back: %s", e.Library, limits.Undo)
	case e.Undo == 0:
		return refused("request %s kept nothing aside: release.undo_window was off", of.ID)
	case at.After(of.FinishedAt.Add(e.Undo)):
		return conflict("the time for undoing request %s ended at %s", of.ID, of.FinishedAt.Add(e.Undo).Format(time.RFC3339))
	}
	return nil
}

// notUndone refuses a second undo: what was kept is back where it was, and to say
// that it is not kept any more would mislead.
func (s *Service) notUndone(ctx context.Context, of locksteward.Request) error {
	about, err := s.store.RequestsForKey(ctx, of.Evidence.Target, of.Evidence.DB, of.Evidence.Key, lookBack)
	if err != nil {
		return err
	}
	for _, r := range about {
		if r.Evidence.Act == locksteward.ActUndo && r.Evidence.Of == of.ID && r.State == locksteward.RequestReleased {
			return conflict("request %s was undone already, by %s with %s", of.ID, r.Requester, r.ID)
		}
	}
	return nil
}

// lookBack is in how many of the newest requests about a lock an undo is looked for.
const lookBack = 100

// followUp is a request that follows another one on the same lock, approved.
func followUp(of locksteward.Request, id string, act locksteward.Act, requester, reason string, at time.Time) locksteward.Request {
	e := of.Evidence
	e.Act, e.Of, e.Bundle, e.BreakGlass, e.BeyondPerMinute = act, of.ID, 0, false, 0
	if act == locksteward.ActUndo {
		e.Undo, e.Placeholder = 0, 0
	}
	r := locksteward.Request{
		ID: id, State: locksteward.RequestApproved, Evidence: e, EvidenceHash: EvidenceHash(e), Requester: requester, Reason: reason,
		CreatedAt: at, ExpiresAt: at.Add(followTTL), ApprovedUntil: at.Add(followTTL),
	}
	return r
}

// followTTL is how long a follow-up may wait for its execution after a crash.
const followTTL = time.Hour
