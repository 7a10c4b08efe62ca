package release

import (
	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Possible says what could be asked for a lock. Each field is why not, "" where it
// could.
type Possible struct {
	Release     string // as WhyNot says
	Placeholder string // a take-over or a lock-delay
	Undo        string
}

// Possible says it of a lock as it was seen last; a request looks again.
func (s *Service) Possible(lock locksteward.Lock) Possible {
	limits := s.limits(freeze(lock, nil))
	out := Possible{Placeholder: limits.Placeholder, Undo: limits.Undo}
	if err := s.WhyNot(lock); err != nil {
		out.Release = err.Error()
	}
	if out.Undo == "" && s.settings.Load().cfg.UndoWindow <= 0 {
		out.Undo = "release.undo_window is off"
	}
	return out
}

// WhyNotApprove says why a person cannot approve a request as it stands, as
// [Service.Approve] would; nil where they can. It writes nothing, and takes what a
// person can still give for given: a reason and confirmations.
func (s *Service) WhyNotApprove(actor Actor, r locksteward.Request) error {
	if err := actor.may(RoleApprover); err != nil {
		return err
	}
	if _, err := s.releaser(r.Evidence.Target); err != nil {
		return err
	}
	if err := s.refusePaused(); err != nil {
		return err
	}
	given := Decision{Reason: "-", EvidenceHash: r.EvidenceHash, ConfirmNoIdentity: true, ConfirmHolderAlive: true}
	if err := mayDecide(r, actor, given, true); err != nil {
		return err
	}
	c, err := s.policy(r.Evidence.Class)
	if err != nil {
		return err
	}
	if err := actor.mayDecideOn(c); err != nil {
		return err
	}
	if !actor.is(r.Requester) {
		return nil
	}
	if err := s.selfApproval(r, c); err != nil {
		return err
	}
	if !s.provenDead(r, c) && c.SelfApprovalOrDefault() == class.SelfApprovalAlert && s.receivers() == 0 {
		return refused("class %q lets one person do both and tells the others (self_approval: alert), but no receiver of alerts is configured; add one in alert.receivers, or let another person approve", c.Name)
	}
	return nil
}
