package release

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// RequestInput is what a person asks for.
type RequestInput struct {
	Target string
	Key    string // exact bytes
	Reason string
	// HolderAlive asks for the release of a lock whose holder lives and renews,
	// but is stuck: owner, type and count are compared, not the expiry.
	HolderAlive bool
	// TakeOver, if positive, puts an owner that nobody is in the lock's place for
	// so long, in place of freeing it.
	TakeOver time.Duration
	// LockDelay is how long nobody gets the lock after its release; nil is what
	// its class says.
	LockDelay *time.Duration
}

// ask is what a request is for, besides its lock.
type ask struct {
	id         string // "": a new one
	bundle     int
	breakGlass bool
	alive      bool
	takeOver   time.Duration
	delay      *time.Duration
}

// Request reads the lock, freezes what it sees and opens a request for its
// release. It wraps locksteward.ErrInvalid (no reason), ErrRefused (role, class,
// format, no credentials), ErrNotFound (target or lock) or ErrConflict (a request
// is open for this lock; the error names it). An open request whose lock changed
// meanwhile gives way: it becomes superseded.
func (s *Service) Request(ctx context.Context, actor Actor, in RequestInput) (locksteward.Request, error) {
	r, err := s.prepare(ctx, actor, RoleRequester, in, ask{alive: in.HolderAlive, takeOver: in.TakeOver, delay: in.LockDelay})
	list := []locksteward.Request{r}
	if err == nil {
		err = s.open(ctx, ActionRequest, list)
	}
	if err != nil {
		return locksteward.Request{}, s.refuse(ctx, actor, ActionRequest, in.Target, in.Key, "", in.Reason, err)
	}
	return list[0], nil
}

// prepare makes the request that a person asks for and stores nothing.
func (s *Service) prepare(ctx context.Context, actor Actor, role Role, in RequestInput, asked ask) (locksteward.Request, error) {
	if err := s.mayAskFor(ctx, actor, in.Target, role); err != nil {
		return locksteward.Request{}, err
	}
	releaser, err := s.releaser(in.Target)
	if err != nil {
		return locksteward.Request{}, err
	}
	reason, err := cleanReason(in.Reason)
	if err != nil {
		return locksteward.Request{}, err
	}
	lock, firing, err := s.locks.ReadLock(ctx, in.Target, in.Key)
	switch {
	case errors.Is(err, locksteward.ErrNotFound):
		return locksteward.Request{}, notFound(`there is no lock "%s" on target %q; it may have ended by itself, see locksteward locks list`,
			locksteward.DisplayKey(in.Key), in.Target)
	case err != nil:
		return locksteward.Request{}, err
	}
	c, err := s.releasable(lock)
	if err != nil {
		return locksteward.Request{}, err
	}
	r, err := s.newRequest(actor.Name, reason, lock, firing, c, asked)
	if err != nil {
		return locksteward.Request{}, err
	}
	return r, whyNot(ctx, releaser, r)
}

// mayAskFor refuses a person who may not ask for anything on a target.
func (s *Service) mayAskFor(ctx context.Context, actor Actor, target string, role Role) error {
	if err := actor.checkName(); err != nil {
		return err
	}
	if _, err := s.releaser(target); err != nil {
		return err
	}
	_ = s.pauses.read(ctx) // another replica may have changed it; refusePaused refuses while it is not known
	if err := s.refusePaused(); err != nil {
		return err
	}
	return actor.may(role)
}

// whyNot is the format's refusal of this very lock, which it knows only from
// what stands there. The act reports what else keeps a reading from succeeding.
func whyNot(ctx context.Context, releaser source.Releaser, r locksteward.Request) error {
	preview, err := releaser.Preview(ctx, r)
	if err == nil && preview.Refusal != nil {
		return preview.Refusal
	}
	return nil
}

// WhyNot says why nobody can ask for the release of a lock, as a request would:
// no means, a pause, its class, or a store that cannot release such locks safely
// (source.Limits); nil where one can.
func (s *Service) WhyNot(lock locksteward.Lock) error {
	if _, err := s.releaser(lock.Target); err != nil {
		return err
	}
	if err := s.refusePaused(); err != nil {
		return err
	}
	_, err := s.releasable(lock)
	return err
}

// refusePaused refuses while all releases are paused.
func (s *Service) refusePaused() error {
	if s.settings.Load().cfg.Paused {
		return refused("all releases are paused by the configuration (release.paused): set it to false to resume")
	}
	return s.pauses.refuseAll(s.now())
}

// releasable returns the lock's class if policy and format let it be released,
// or why not.
func (s *Service) releasable(lock locksteward.Lock) (class.Class, error) {
	name := locksteward.DisplayKey(lock.Key)
	if lock.Kind != locksteward.KindLock {
		return class.Class{}, refused("%q only looks like a lock by its name; add a class with match and release: approve if it is one", name)
	}
	c, err := s.policy(lock.Class)
	switch {
	case !lock.Configured || lock.Class == class.Default:
		return class.Class{}, refused("no configured class claims %q; add a class with match and release: approve", name)
	case err != nil:
		return class.Class{}, err
	}
	if err := s.limits(freeze(lock, nil)).Release; err != nil {
		return class.Class{}, err
	}
	return c, nil
}

// policy returns the class if its locks may be released.
func (s *Service) policy(name string) (class.Class, error) {
	c, ok := s.settings.Load().classes.Get(name)
	if !ok {
		return class.Class{}, refused("class %q is not configured any more; add it again with release: approve", name)
	}
	if !c.Releasable() {
		return class.Class{}, refused("class %q does not allow releases; set release: approve in it", name)
	}
	return c, nil
}

func (s *Service) newRequest(requester, reason string, lock locksteward.Lock, firing []string, c class.Class, asked ask) (locksteward.Request, error) {
	cfg := s.settings.Load().cfg
	at := s.now().UTC().Truncate(time.Microsecond) // as exact as the store keeps it
	e := freeze(lock, firing)
	e.Policy = PolicyHash(c)
	e.HolderAlive, e.Bundle, e.BreakGlass = asked.alive, asked.bundle, asked.breakGlass
	if prover, ok := s.locks.(Prover); ok && slices.Contains(e.Findings, ruleHolderDead) {
		e.Proof = prover.ProofOf(lock)
	}
	if e.Placeholder = c.LockDelay; asked.delay != nil {
		e.Placeholder = *asked.delay
	}
	if asked.takeOver != 0 {
		e.Act, e.Placeholder = locksteward.ActTakeOver, asked.takeOver
	}
	if err := s.checkStand(e, asked); err != nil {
		return locksteward.Request{}, err
	}
	if cfg.UndoWindow > 0 && s.limits(e).Undo == "" {
		e.Undo = cfg.UndoWindow
	}
	id := asked.id
	if id == "" {
		id = newID()
	}
	r := locksteward.Request{
		ID: id, State: locksteward.RequestPending, Evidence: e, Requester: requester, Reason: reason,
		CreatedAt: at, ExpiresAt: at.Add(cfg.RequestTTL),
	}
	r.EvidenceHash = EvidenceHash(r.Evidence)
	return r, nil
}

// ruleHolderDead is the rule whose findings say how surely they are true.
const ruleHolderDead = "holder/dead"

// checkStand refuses a delay or a take-over that the format cannot do.
func (s *Service) checkStand(e locksteward.Evidence, asked ask) error {
	what := "a take-over"
	if e.Act == locksteward.ActRelease {
		what = "a lock-delay"
	}
	switch {
	case e.Placeholder < 0 || e.Placeholder > class.MaxPlaceholder:
		return invalid("%s must be at most %s, got %s", what, class.MaxPlaceholder, e.Placeholder)
	case e.Placeholder > 0 && e.Placeholder < time.Second:
		return invalid("%s must be at least 1s, got %s", what, e.Placeholder)
	case e.Placeholder == 0:
		return nil
	}
	if why := s.limits(e).Placeholder; why != "" {
		return refused("%s is not possible for this %s lock: %s; ask for a release with a lock-delay of 0", what, e.Library, why)
	}
	return nil
}

// open stores new requests that are asked for together, all or none, and marks those that
// are beyond many_per_minute; an older one about another state of a lock gives way.
func (s *Service) open(ctx context.Context, action string, list []locksteward.Request) error {
	var gone []locksteward.Request
	err := s.store.CreateRequests(ctx, list,
		func(there recent) error {
			gone = nil
			return s.countIn(list, there)
		},
		func(r locksteward.Request) []locksteward.Entry {
			e := entry(r.CreatedAt, r.Requester, action, r, r.Reason, created(r))
			return []locksteward.Entry{notify(e, locksteward.EventRequested, r, locksteward.NewMessage("release.requested", actWord(r.Evidence.Act)))}
		},
		func(old *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error) {
			ended, err := s.supersede(old, by)
			if err != nil && len(list) > 1 {
				err = fmt.Errorf("request for %q: %w", locksteward.DisplayKey(by.Evidence.Key), err)
			}
			gone = append(gone, *old)
			return ended, err
		})
	if err != nil {
		return err
	}
	for _, r := range gone {
		s.final(r)
	}
	for _, r := range list {
		s.log.Info("release requested", requestFields(r)...)
	}
	return nil
}

func (s *Service) supersede(old *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error) {
	changes := source.Differences(old.Evidence, by.Evidence)
	due := old.State == locksteward.RequestPending && !by.CreatedAt.Before(old.ExpiresAt)
	switch {
	case old.State == locksteward.RequestExecuting:
		return nil, conflict("request %s is being executed on this lock; wait for its outcome", old.ID)
	case due:
		return s.expire(old, by.CreatedAt)
	case len(changes) == 0:
		return nil, conflict("request %s by %s is %s for this lock already; approve or deny that one", old.ID, old.Requester, old.State)
	}
	if err := advance(old, locksteward.RequestSuperseded); err != nil {
		return nil, err
	}
	old.FinishedAt = by.CreatedAt
	m := locksteward.NewMessage("release.superseded-changed", by.ID)
	old.Outcome = english(m)
	e := entry(by.CreatedAt, by.Requester, ActionSupersede, *old, "", detail{By: by.ID, Differences: changes, Sentence: old.Outcome})
	return []locksteward.Entry{notify(e, locksteward.EventFinal, *old, m)}, nil
}

// newID returns a request's id: 60 random bits in lower-case base32.
func newID() string { return "r-" + strings.ToLower(rand.Text()[:12]) }
