package release

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Word is what a person says on a request.
type Word struct {
	Reason string
	// EvidenceHash is the request's, as the person saw it: it shows that they
	// decide on what is stored. Approving needs it, denying may leave it out.
	EvidenceHash string
	// ConfirmNoIdentity says that the person knows that this lock cannot be told
	// from the next one of its name. Approving a request with identity none needs
	// it.
	ConfirmNoIdentity bool
}

// Approve records an approval and, when it completes the number that the class
// asks for, executes the request and returns it with its outcome. The execution
// goes on if ctx ends meanwhile. The returned request is still executing if the
// server did not answer: [Service.Run] finds out what happened. Errors wrap
// locksteward.ErrInvalid, ErrRefused, ErrNotFound or ErrConflict.
func (s *Service) Approve(ctx context.Context, actor Actor, id string, word Word) (locksteward.Request, error) {
	s.enter(id)
	defer s.leave(id)
	r, err := s.decide(ctx, actor, id, word, true)
	if err != nil {
		return locksteward.Request{}, err
	}
	if r.State != locksteward.RequestApproved {
		return r, nil
	}
	return s.execute(ctx, id)
}

// Deny ends a request that is not being executed yet. Errors as for
// [Service.Approve].
func (s *Service) Deny(ctx context.Context, actor Actor, id string, word Word) (locksteward.Request, error) {
	r, err := s.decide(ctx, actor, id, word, false)
	if err != nil {
		return locksteward.Request{}, err
	}
	s.final(r)
	return r, nil
}

func (s *Service) decide(ctx context.Context, actor Actor, id string, word Word, approve bool) (locksteward.Request, error) {
	action := ActionDeny
	if approve {
		action = ActionApprove
	}
	var seen locksteward.Evidence
	r, err := s.tryDecide(ctx, actor, id, word, approve, &seen)
	if err != nil {
		return locksteward.Request{}, s.refuse(ctx, actor, action, seen.Target, seen.Key, id, word.Reason, err)
	}
	return r, nil
}

func (s *Service) tryDecide(ctx context.Context, actor Actor, id string, word Word, approve bool, seen *locksteward.Evidence) (locksteward.Request, error) {
	if err := actor.checkName(); err != nil {
		return locksteward.Request{}, err
	}
	before, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	*seen = before.Evidence
	if _, err := s.executor(before.Evidence.Target); err != nil {
		return locksteward.Request{}, err
	}
	if err := s.killed(); err != nil && approve {
		return locksteward.Request{}, err
	}
	if err := actor.may(RoleApprover); err != nil {
		return locksteward.Request{}, err
	}
	if word.Reason, err = cleanReason(word.Reason); err != nil {
		return locksteward.Request{}, err
	}
	lapsed := false
	r, err := s.store.UpdateRequest(ctx, id, func(r *locksteward.Request) ([]locksteward.Entry, error) {
		at := s.now().UTC().Truncate(time.Microsecond)
		if due(*r, at) {
			lapsed = true
			return s.expire(r, at)
		}
		if err := mayDecide(*r, actor, word, approve); err != nil {
			return nil, err
		}
		r.Decisions = append(r.Decisions, locksteward.Decision{
			By: actor.Name, Approve: approve, Reason: word.Reason, At: at, EvidenceHash: r.EvidenceHash,
		})
		if approve {
			return s.approved(r, actor, word, at)
		}
		return s.denied(r, actor, word, at)
	})
	if err != nil {
		return locksteward.Request{}, err
	}
	if lapsed {
		s.final(r)
		return locksteward.Request{}, conflict("request %s expired at %s; request again if the lock is still stuck", id, r.ExpiresAt.Format(time.RFC3339))
	}
	return r, nil
}

// mayDecide checks a word against the request as it is stored now.
func mayDecide(r locksteward.Request, actor Actor, word Word, approve bool) error {
	switch {
	case r.State.Final():
		return conflict("request %s is %s already, which is final; request again if the lock is still stuck", r.ID, r.State)
	case r.State == locksteward.RequestExecuting || approve && r.State == locksteward.RequestApproved:
		return conflict("request %s is %s already; its outcome comes by itself", r.ID, r.State)
	case approve && word.EvidenceHash == "":
		return invalid("evidence hash is missing: an approval signs what was seen; look at request %s and give its evidence_hash", r.ID)
	case word.EvidenceHash != "" && word.EvidenceHash != r.EvidenceHash:
		return conflict("the evidence hash is not that of request %s; look at the request again and decide on what it shows", r.ID)
	case approve && slices.ContainsFunc(r.Decisions, func(d locksteward.Decision) bool { return actor.is(d.By) }):
		return conflict("%s has decided on request %s already; another person has to", actor.Name, r.ID)
	case approve && r.Evidence.Identity == locksteward.IdentityNone && !word.ConfirmNoIdentity:
		return invalid("this lock has a constant value without TTL: if it was released and taken again meanwhile, the new hold is deleted. Look whether anybody works under it, then confirm with confirm_no_identity (--confirm-no-identity)")
	}
	return nil
}

// approved counts the words; the last one that is needed makes the request
// approved.
func (s *Service) approved(r *locksteward.Request, actor Actor, word Word, at time.Time) ([]locksteward.Entry, error) {
	c, err := s.policy(r.Evidence.Class)
	if err != nil {
		return nil, err
	}
	if actor.is(r.Requester) {
		if err := selfApproval(*r, c); err != nil {
			return nil, err
		}
	}
	var people []string
	for _, d := range r.Decisions {
		if name := strings.ToLower(d.By); d.Approve && !slices.Contains(people, name) {
			people = append(people, name)
		}
	}
	if len(people) >= c.ApprovalsOrDefault() {
		if err := advance(r, locksteward.RequestApproved); err != nil {
			return nil, err
		}
		r.ApprovedUntil = at.Add(s.settings.Load().cfg.ApprovalTTL)
	}
	return []locksteward.Entry{entry(at, actor.Name, ActionApprove, *r, word.Reason, detail{EvidenceHash: r.EvidenceHash, Identity: string(r.Evidence.Identity)})}, nil
}

// selfApproval says whether a requester may approve their own request: where the
// class allows it, or where one of its dead_when rules fired, but never for a
// lock that cannot be told from the next.
func selfApproval(r locksteward.Request, c class.Class) error {
	if r.Evidence.Identity == locksteward.IdentityNone {
		return refused("request %s is your own and its lock cannot be told from the next of its name; another approver has to look", r.ID)
	}
	if c.SelfApprovalOrDefault() == class.SelfApprovalAllow || len(intersect(c.DeadWhen, r.Evidence.Findings)) > 0 {
		return nil
	}
	return refused("request %s is your own; another approver has to decide (class %q: self_approval is deny and no rule of dead_when fired)", r.ID, c.Name)
}

func (s *Service) denied(r *locksteward.Request, actor Actor, word Word, at time.Time) ([]locksteward.Entry, error) {
	if err := advance(r, locksteward.RequestDenied); err != nil {
		return nil, err
	}
	r.FinishedAt = at
	r.Outcome = "Denied by " + actor.Name + ". Nothing was touched."
	return []locksteward.Entry{entry(at, actor.Name, ActionDeny, *r, word.Reason, detail{EvidenceHash: r.EvidenceHash, Sentence: r.Outcome})}, nil
}

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
	waited := "Expired: not enough people approved in time. Nothing was touched."
	if r.State == locksteward.RequestApproved {
		waited = "Expired: it was approved but not executed in time. Nothing was touched."
	}
	if err := advance(r, locksteward.RequestExpired); err != nil {
		return nil, err
	}
	r.FinishedAt, r.Outcome = at, waited
	return []locksteward.Entry{entry(at, AgentName, ActionExpire, *r, "", detail{Sentence: waited})}, nil
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
		if !due(r, at) {
			continue
		}
		changed := false
		r, err := s.store.UpdateRequest(ctx, r.ID, func(r *locksteward.Request) ([]locksteward.Entry, error) {
			if !due(*r, at) {
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
