package release

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/dialect"
)

// RequestInput is what a person asks for.
type RequestInput struct {
	Target string
	Key    string // exact bytes
	Reason string
}

// Request reads the lock, freezes what it sees and opens a request for its
// release. It wraps locksteward.ErrInvalid (no reason), ErrRefused (role, class,
// dialect, no credentials), ErrNotFound (target or lock) or ErrConflict (a request
// is open for this lock; the error names it). An open request whose lock changed
// meanwhile gives way: it becomes superseded.
func (s *Service) Request(ctx context.Context, actor Actor, in RequestInput) (locksteward.Request, error) {
	r, err := s.request(ctx, actor, in)
	if err != nil {
		return locksteward.Request{}, s.refuse(ctx, actor, ActionRequest, in.Target, in.Key, "", in.Reason, err)
	}
	return r, nil
}

func (s *Service) request(ctx context.Context, actor Actor, in RequestInput) (locksteward.Request, error) {
	if err := actor.checkName(); err != nil {
		return locksteward.Request{}, err
	}
	if _, err := s.executor(in.Target); err != nil {
		return locksteward.Request{}, err
	}
	if err := s.killed(); err != nil {
		return locksteward.Request{}, err
	}
	if err := actor.may(RoleRequester); err != nil {
		return locksteward.Request{}, err
	}
	reason, err := cleanReason(in.Reason)
	if err != nil {
		return locksteward.Request{}, err
	}
	lock, firing, err := s.locks.ReadLock(ctx, in.Target, in.Key)
	switch {
	case errors.Is(err, locksteward.ErrNotFound):
		return locksteward.Request{}, notFound("there is no lock %q on target %q; it may have ended by itself, see locksteward locks list",
			locksteward.DisplayKey(in.Key), in.Target)
	case err != nil:
		return locksteward.Request{}, err
	}
	if _, err := s.releasable(lock); err != nil {
		return locksteward.Request{}, err
	}
	r := s.newRequest(actor.Name, reason, lock, firing)
	return r, s.open(ctx, ActionRequest, r)
}

// killed refuses while the kill switch is on.
func (s *Service) killed() error {
	if s.settings.Load().cfg.KillSwitch {
		return refused("the kill switch is on: nothing is released; set release.kill_switch to false when that is over")
	}
	return nil
}

// releasable returns the lock's class if policy and dialect let it be released,
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
	_, known := dialect.Get(lock.Dialect)
	switch {
	case lock.TooLarge && (lock.Type == "string" || lock.Type == "hash"):
		return class.Class{}, refused("%q was too large to read in full, so it cannot be compared; look at it with redis-cli and release it through its own library", name)
	case !known || lock.Dialect == dialect.Unknown || lock.TokenDigest == "":
		return class.Class{}, refused("nobody can say what must be compared in %q (a %s) and who must be woken; see docs/dialects/unknown.md for the way by hand", name, lock.Type)
	case lock.ExpireAt == 0:
		return class.Class{}, refused("the expiry of %q is not known exactly, so it cannot be compared; this needs Redis 7.0 and the right to PEXPIRETIME", name)
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

func (s *Service) newRequest(requester, reason string, lock locksteward.Lock, firing []string) locksteward.Request {
	at := s.now().UTC().Truncate(time.Microsecond) // as exact as the store keeps it
	r := locksteward.Request{
		ID: newID(), State: locksteward.RequestPending, Evidence: freeze(lock, firing),
		Requester: requester, Reason: reason, CreatedAt: at, ExpiresAt: at.Add(s.settings.Load().cfg.RequestTTL),
	}
	r.EvidenceHash = EvidenceHash(r.Evidence)
	return r
}

// open stores a new request; an older one about another state of the lock gives
// way to it.
func (s *Service) open(ctx context.Context, action string, r locksteward.Request) error {
	var gone *locksteward.Request
	err := s.store.CreateRequest(ctx, r, []locksteward.Entry{entry(r.CreatedAt, r.Requester, action, r, r.Reason, created(r))},
		func(old *locksteward.Request) ([]locksteward.Entry, error) {
			entries, err := s.supersede(old, r)
			gone = old
			return entries, err
		})
	if err != nil {
		return err
	}
	if gone != nil {
		s.final(*gone)
	}
	s.log.Info("release requested", requestFields(r)...)
	return nil
}

func (s *Service) supersede(old *locksteward.Request, by locksteward.Request) ([]locksteward.Entry, error) {
	changes := differences(old.Evidence, by.Evidence)
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
	old.Outcome = "Superseded by request " + by.ID + ": the lock changed since this one. Nothing was touched."
	return []locksteward.Entry{
		entry(by.CreatedAt, by.Requester, ActionSupersede, *old, "", detail{By: by.ID, Differences: changes, Sentence: old.Outcome}),
	}, nil
}

// newID returns a request's id: 60 random bits in lower-case base32.
func newID() string { return "r-" + strings.ToLower(rand.Text()[:12]) }
