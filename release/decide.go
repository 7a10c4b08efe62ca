package release

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Decision is a person's approval or denial of a request.
type Decision struct {
	Reason string
	// EvidenceHash is the request's, as the person saw it: it shows that they
	// decide on what is stored. Approving needs it, denying may leave it out. Of a
	// bundle it is [BundleHash].
	EvidenceHash string
	// ConfirmNoIdentity says that the person knows that this lock cannot be distinguished
	// from the next one of its name, or by its expiry alone, and that nobody works
	// under it. Approving a request with a weak identity needs it: see
	// [locksteward.Evidence.WeakIdentity].
	ConfirmNoIdentity bool
	// ConfirmHolderAlive says that the person knows that the holder may still be
	// writing. Approving a request with HolderAlive needs it.
	ConfirmHolderAlive bool
}

// Approve records an approval and, when it completes the number that the class
// asks for, executes the request and returns it with its outcome. The execution
// goes on if ctx ends meanwhile. The returned request is still executing if the
// server did not answer: [Service.Run] finds out what happened. Errors wrap
// locksteward.ErrInvalid, ErrRefused, ErrNotFound or ErrConflict.
func (s *Service) Approve(ctx context.Context, actor Actor, id string, decision Decision) (locksteward.Request, error) {
	s.enter(id)
	defer s.leave(id)
	r, err := s.decide(ctx, actor, id, decision, true)
	if err != nil {
		return locksteward.Request{}, err
	}
	if r.State != locksteward.RequestApproved {
		return r, nil
	}
	return s.execute(ctx, id)
}

// Deny records a denial and, when it completes the number that the class asks for,
// ends the request, which must not be executed yet. Errors as for
// [Service.Approve].
func (s *Service) Deny(ctx context.Context, actor Actor, id string, decision Decision) (locksteward.Request, error) {
	r, err := s.decide(ctx, actor, id, decision, false)
	if err != nil {
		return locksteward.Request{}, err
	}
	if r.State.Final() {
		s.final(r)
	}
	return r, nil
}

func (s *Service) decide(ctx context.Context, actor Actor, id string, decision Decision, approve bool) (locksteward.Request, error) {
	action := ActionDeny
	if approve {
		action = ActionApprove
	}
	var seen locksteward.Evidence
	r, err := s.tryDecide(ctx, actor, id, decision, approve, &seen)
	if err != nil {
		return locksteward.Request{}, s.refuse(ctx, actor, action, seen.Target, seen.Key, id, decision.Reason, err)
	}
	return r, nil
}

func (s *Service) tryDecide(ctx context.Context, actor Actor, id string, decision Decision, approve bool, seen *locksteward.Evidence) (locksteward.Request, error) {
	if err := actor.checkName(); err != nil {
		return locksteward.Request{}, err
	}
	before, err := s.store.GetRequest(ctx, id)
	if err != nil {
		return locksteward.Request{}, err
	}
	*seen = before.Evidence
	if err := s.first(ctx, actor, before, decision, approve); err != nil {
		return locksteward.Request{}, err
	}
	decision.Reason, _ = cleanReason(decision.Reason)
	lapsed := false
	r, err := s.store.DecideRequest(ctx, id, func(r *locksteward.Request, others acts) ([]locksteward.Entry, error) {
		at := s.now().UTC().Truncate(time.Microsecond)
		if lapsed = due(*r, at); lapsed {
			return s.expire(r, at)
		}
		if r.Evidence.Bundle > 0 && !actor.bundled {
			return nil, conflict("request %s is one of %d that are decided on together; decide on %s", r.ID, r.Evidence.Bundle, bundleID(r.ID))
		}
		said, err := s.addDecision(r, actor, decision, approve, at)
		if err == nil && r.State == locksteward.RequestApproved && approve {
			err = s.reserve(others, false, *r)
		}
		return said, err
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

// first is what is checked of a decision before the request is looked at.
func (s *Service) first(ctx context.Context, actor Actor, r locksteward.Request, decision Decision, approve bool) error {
	if _, err := s.releaser(r.Evidence.Target); err != nil {
		return err
	}
	_ = s.pauses.read(ctx) // another replica may have changed it; refusePaused refuses while it is not known
	if err := s.refusePaused(); err != nil && approve {
		return err
	}
	if err := actor.may(RoleApprover); err != nil {
		return err
	}
	_, err := cleanReason(decision.Reason)
	return err
}

// addDecision adds a decision of a person to a request that is not due.
func (s *Service) addDecision(r *locksteward.Request, actor Actor, decision Decision, approve bool, at time.Time) ([]locksteward.Entry, error) {
	if err := mayDecide(*r, actor, decision, approve); err != nil {
		return nil, err
	}
	c, err := s.policy(r.Evidence.Class)
	if err == nil {
		err = actor.mayDecideOn(c)
	} else if !approve {
		err = nil // an approver may also end what nobody can approve any more
	}
	if err != nil {
		return nil, err
	}
	r.Decisions = append(r.Decisions, locksteward.Decision{
		By: actor.Name, Approve: approve, Reason: decision.Reason, At: at, EvidenceHash: r.EvidenceHash,
	})
	if approve {
		return s.approved(r, c, actor, decision, at)
	}
	return s.denied(r, c, actor, decision, at)
}

// mayDecide checks a decision against the request as it is stored now.
func mayDecide(r locksteward.Request, actor Actor, decision Decision, approve bool) error {
	said := slices.ContainsFunc(r.Decisions, func(d locksteward.Decision) bool { return actor.is(d.By) && (approve || !d.Approve) })
	switch {
	case r.State.Final():
		return conflict("request %s is %s already, which is final; request again if the lock is still stuck", r.ID, r.State)
	case r.State == locksteward.RequestExecuting || approve && r.State == locksteward.RequestApproved:
		return conflict("request %s is %s already; its outcome comes by itself", r.ID, r.State)
	case approve && decision.EvidenceHash == "":
		return invalid("evidence hash is missing: an approval signs what was seen; look at request %s and give its evidence_hash", r.ID)
	case decision.EvidenceHash != "" && decision.EvidenceHash != r.EvidenceHash:
		return conflict("the evidence hash is not that of request %s; look at the request again and decide on what it shows", r.ID)
	case approve && !intact(r):
		return conflict("the evidence of request %s is not what its hash says: somebody changed it in the store; deny it, and look at the audit trail", r.ID)
	case said:
		return conflict("%s has decided on request %s already; another person has to", actor.Name, r.ID)
	case approve && r.Evidence.Identity == locksteward.IdentityNone && !decision.ConfirmNoIdentity:
		return invalid("this lock has a constant value without TTL: if it was released and taken again meanwhile, the new hold is deleted. Look whether anybody works under it, then confirm with confirm_no_identity (--confirm-no-identity)")
	case approve && r.Evidence.WeakIdentity() && !decision.ConfirmNoIdentity:
		return invalid("this lock has a constant value: the next holder writes the same value, so only the expiry distinguishes the two holds. Check that nobody works under it, then confirm with confirm_no_identity (--confirm-no-identity)")
	case approve && r.Evidence.HolderAlive && !decision.ConfirmHolderAlive:
		return invalid("the holder of this lock is alive and may still be writing: after the release two work at once unless the resource is fenced. Stop the holder first if you can, then confirm it: tick the box above the button, or use --confirm-holder-alive (API: confirm_holder_alive)")
	}
	return nil
}

// lastWords are those who said yes and no last, each person once, in lower case.
func lastWords(r locksteward.Request) (yes, no []string) {
	last := map[string]bool{}
	for _, d := range r.Decisions {
		last[strings.ToLower(d.By)] = d.Approve
	}
	for name, approve := range last {
		if approve {
			yes = append(yes, name)
		} else {
			no = append(no, name)
		}
	}
	return yes, no
}

// provenDead says whether the class calls the lock dead: a rule of dead_when
// fired, or holder/dead with proof. A lock that cannot be distinguished from the next, or
// whose library leaves it to people, or whose holder lives, is never called so.
func (s *Service) provenDead(r locksteward.Request, c class.Class) bool {
	e := r.Evidence
	if e.Identity == locksteward.IdentityNone || e.HolderAlive || s.limits(e).Decision != "" {
		return false
	}
	return len(intersect(c.DeadWhen, e.Findings)) > 0 ||
		e.Proof == locksteward.Proven && slices.Contains(e.Findings, ruleHolderDead)
}

// needed is how many people must approve: one where the lock is called dead, and one
// more where it was asked for beyond many_per_minute.
func (s *Service) needed(r locksteward.Request, c class.Class) int {
	people := c.ApprovalsOrDefault()
	if s.provenDead(r, c) {
		people = 1
	}
	if r.Evidence.BeyondPerMinute > 0 {
		people++
	}
	return people
}

// approved counts the decisions; the last one that is needed makes the request
// approved.
func (s *Service) approved(r *locksteward.Request, c class.Class, actor Actor, decision Decision, at time.Time) ([]locksteward.Entry, error) {
	alone := false
	if actor.is(r.Requester) {
		if err := s.selfApproval(*r, c); err != nil {
			return nil, err
		}
		if !s.provenDead(*r, c) && c.SelfApprovalOrDefault() == class.SelfApprovalAlert {
			if s.receivers() == 0 {
				return nil, refused("class %q lets one person do both and tells the others (self_approval: alert), but no receiver of alerts is configured; add one in alert.receivers, or let another person approve", c.Name)
			}
			alone = true
		}
	}
	if yes, _ := lastWords(*r); len(yes) >= s.needed(*r, c) {
		if err := advance(r, locksteward.RequestApproved); err != nil {
			return nil, err
		}
		r.ApprovedUntil = at.Add(s.settings.Load().cfg.ApprovalTTL)
	}
	e := entry(at, actor.Name, ActionApprove, *r, decision.Reason, detail{EvidenceHash: r.EvidenceHash, Identity: string(r.Evidence.Identity)})
	if alone {
		e = notify(e, locksteward.EventSelfApproved, *r, locksteward.NewMessage("release.self-approved", actor.Name))
	}
	return []locksteward.Entry{e}, nil
}

// selfApproval says whether a requester may approve their own request: where the
// class allows it, or where one of its dead_when rules fired, but never for a
// lock that cannot be distinguished from the next, nor for one of a library whose locks
// are for people to decide (source.Limits).
func (s *Service) selfApproval(r locksteward.Request, c class.Class) error {
	if r.Evidence.Identity == locksteward.IdentityNone {
		return refused("request %s is your own and its hold cannot be distinguished from the next one of that name; another approver has to look", r.ID)
	}
	if why := s.limits(r.Evidence).Decision; why != "" {
		return refused("request %s is your own, and no rule decides on a %s lock: %s; another approver has to look", r.ID, r.Evidence.Library, why)
	}
	if c.SelfApprovalOrDefault() != class.SelfApprovalDeny || s.provenDead(r, c) {
		return nil
	}
	return refused("request %s is your own; another approver has to decide (class %q: self_approval is deny and no rule of dead_when fired)", r.ID, c.Name)
}

// denied counts the words; the last one that is needed ends the request.
func (s *Service) denied(r *locksteward.Request, c class.Class, actor Actor, decision Decision, at time.Time) ([]locksteward.Entry, error) {
	m := locksteward.NewMessage("release.denied", actor.Name)
	if _, no := lastWords(*r); len(no) >= c.DenialsOrDefault() {
		if err := advance(r, locksteward.RequestDenied); err != nil {
			return nil, err
		}
		r.FinishedAt = at
		r.Outcome = english(m)
	}
	e := entry(at, actor.Name, ActionDeny, *r, decision.Reason, detail{EvidenceHash: r.EvidenceHash, Sentence: r.Outcome})
	if r.State.Final() {
		e = notify(e, locksteward.EventFinal, *r, m)
	}
	return []locksteward.Entry{e}, nil
}
