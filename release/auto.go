package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
)

// Dead is a lock that a complete sweep found and that rules fire on.
type Dead struct {
	Lock locksteward.Lock
	// Firing are the rules and expressions that fire on it.
	Firing []string
	// Proof is how surely its holder is dead where holder/dead fires.
	Proof locksteward.Proof
}

// alone are the rules of deadWhen that fire and may count without a person: a
// death that is only presumed does where the holder promised to stop working
// before its heartbeat ran out, and not elsewhere.
func (d Dead) alone(deadWhen []string) []string {
	rules := intersect(deadWhen, d.Firing)
	if d.Proof != locksteward.Proven && (d.Lock.Claim == nil || !d.Lock.Claim.EndsWithHeartbeat) {
		rules = slices.DeleteFunc(rules, func(rule string) bool { return rule == ruleHolderDead })
	}
	return rules
}

// sweeps is what the complete sweeps of each target said of locks that look
// dead. It begins anew with the process, and when a target comes back from another
// replica: what needs no person needs to be seen by this one, without a gap.
type sweeps struct {
	mu      sync.Mutex
	targets map[string]*deadOf
}

type deadOf struct {
	locks map[string]deadSince
	// openUntil is how long the circuit breaker stays open, and many for how many
	// locks it opened.
	openUntil time.Time
	many      int
	// unnotified says that people were not yet notified that it opened.
	unnotified bool
}

// deadSince is for how many complete sweeps in a row a hold looks dead, and since
// when and for how many of them in a way that counts without a person.
type deadSince struct {
	sweeps int

	aloneSince  time.Time
	aloneSweeps int
}

// holdID is one hold as it stands, untouched: a renewal makes another.
func holdID(l locksteward.Lock) string {
	claim := ""
	if l.Claim != nil {
		claim = l.Claim.ID
	}
	return fmt.Sprintf("%d\x00%s\x00%s\x00%d\x00%s\x00%d", l.DB, l.Key, l.TokenDigest, l.ExpireAt, claim, l.Count)
}

// swept takes in a complete sweep and reports whether people must be notified that the
// breaker opened.
func (s *sweeps) swept(target string, dead []Dead, now *settings, at time.Time) (tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.targets == nil {
		s.targets = map[string]*deadOf{}
	}
	t := s.targets[target]
	if t == nil {
		t = &deadOf{}
		s.targets[target] = t
	}
	next := make(map[string]deadSince, len(dead))
	for _, d := range dead {
		id := holdID(d.Lock)
		was := t.locks[id]
		was.sweeps++
		switch c, ok := now.classes.Get(d.Lock.Class); {
		case !ok || len(d.alone(c.DeadWhen)) == 0:
			was.aloneSince, was.aloneSweeps = time.Time{}, 0
		case was.aloneSweeps == 0:
			was.aloneSince, was.aloneSweeps = at, 1
		default:
			was.aloneSweeps++
		}
		next[id] = was
	}
	t.locks = next
	if len(dead) < now.cfg.BreakerLocks {
		return false
	}
	t.unnotified = t.unnotified || !at.Before(t.openUntil)
	t.openUntil, t.many = at.Add(now.cfg.BreakerFor), max(len(dead), t.many)
	return t.unnotified
}

// forget begins anew on a target that another replica worked on: what that one saw
// nobody here knows. A breaker that is open stays so.
func (s *sweeps) forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.targets[target]; t != nil {
		t.locks = nil
	}
}

// said notes that people were notified that the breaker of a target opened.
func (s *sweeps) said(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.targets[target]; t != nil {
		t.unnotified = false
	}
}

func (s *sweeps) seen(target string, l locksteward.Lock) deadSince {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.targets[target]; t != nil {
		return t.locks[holdID(l)]
	}
	return deadSince{}
}

// open returns for how many locks the circuit breaker of a target is open; 0 if
// it is closed.
func (s *sweeps) open(target string, at time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.targets[target]; t != nil && at.Before(t.openUntil) {
		return t.many
	}
	return 0
}

// Swept is called with each complete sweep of a target with the locks that rules
// fire on. It counts how long each has looked dead, opens the circuit breaker
// when many do at once, proposes releases as [Service.Propose], and carries out
// those that need no person by the class's policy. The requests are those that
// it made or carried out. The error joins what failed; the rest is done.
func (s *Service) Swept(ctx context.Context, target string, found []Dead) ([]locksteward.Request, error) {
	now := s.settings.Load()
	dead := slices.DeleteFunc(slices.Clone(found), func(d Dead) bool {
		c, ok := now.classes.Get(d.Lock.Class)
		return !ok || len(intersect(c.DeadWhen, d.Firing)) == 0
	})
	// How long a lock has looked dead is counted by the monotonic clock, which UTC
	// would drop: the other may be set.
	seen := s.now()
	at := seen.UTC()
	if s.auto.swept(target, dead, now, seen) {
		m := locksteward.NewMessage("release.breaker", len(dead), target, now.cfg.BreakerFor.String())
		s.log.Warn("the circuit breaker opened", zap.String("target", target), zap.Int("locks", len(dead)))
		e := locksteward.Entry{
			At: at, Actor: AgentName, Action: ActionBreaker, Target: target, Outcome: "open", Detail: detail{Sentence: english(m)}.json(),
			Event: &locksteward.Event{
				ID: "breaker/" + target + "/" + at.Format(time.RFC3339), Kind: locksteward.EventBreaker, At: at, Actor: AgentName, Target: target, Message: m,
			},
		}
		if err := s.store.AppendEntries(ctx, e); err != nil {
			return nil, err
		}
		s.auto.said(target)
	}
	var out []locksteward.Request
	var errs []error
	for _, d := range dead {
		r, err := s.sweptOne(ctx, d)
		if err != nil {
			errs = append(errs, fmt.Errorf("release of %q: %w", locksteward.DisplayKey(d.Lock.Key), err))
		}
		if r != nil {
			out = append(out, *r)
		}
	}
	return out, errors.Join(errs...)
}

func (s *Service) sweptOne(ctx context.Context, d Dead) (*locksteward.Request, error) {
	r, err := s.propose(ctx, d.Lock, d.Firing, d.Proof, s.auto.seen(d.Lock.Target, d.Lock).sweeps >= class.MinSweeps)
	if err != nil {
		return nil, err
	}
	c, ok := s.settings.Load().classes.Get(d.Lock.Class)
	if !ok || !c.Automatic() {
		return r, nil
	}
	open := r
	if open == nil {
		if open, err = s.ownOpen(ctx, d.Lock); open == nil || err != nil {
			return nil, err
		}
	}
	because := s.proven(*open, c, d)
	if because == "" {
		return r, nil
	}
	s.enter(open.ID)
	defer s.leave(open.ID)
	if err = s.mayActAlone(ctx, *open); err == nil {
		err = s.decideAlone(ctx, open.ID, because)
	}
	switch {
	case errors.Is(err, locksteward.ErrRefused):
		s.log.Info("a person has to decide", append(requestFields(*open), zap.String("why", err.Error()))...)
		return r, nil
	case err != nil:
		return r, err
	}
	done, err := s.execute(ctx, open.ID)
	if err != nil {
		return r, err
	}
	return &done, nil
}

// ownOpen returns the agent's own request about a lock that waits for a decision.
func (s *Service) ownOpen(ctx context.Context, lock locksteward.Lock) (*locksteward.Request, error) {
	list, err := s.store.RequestsForKey(ctx, lock.Target, lock.DB, lock.Key, 5)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.State == locksteward.RequestPending && r.Requester == AgentName {
			return &r, nil
		}
	}
	return nil, nil
}

// proven says why a request needs no person; "" if it does. What is doubtful
// means that the holder is alive.
func (s *Service) proven(r locksteward.Request, c class.Class, d Dead) string {
	e := r.Evidence
	switch {
	case e.Identity == locksteward.IdentityNone, e.HolderAlive, s.limits(e).Decision != "",
		e.Act != locksteward.ActRelease, e.BeyondPerMinute > 0, len(r.Decisions) > 0, // a person denied, of several that must
		len(source.Differences(e, freeze(d.Lock, nil))) > 0:
		return ""
	}
	if c.ProofOrDefault() == class.ProofHeartbeat {
		switch {
		case !slices.Contains(d.alone(c.DeadWhen), ruleHolderDead):
			return ""
		case d.Proof == locksteward.Proven:
			return "auto: holder/dead is proven"
		}
		return "auto: holder/dead is presumed, and the holder promised to stop working before its heartbeat ran out"
	}
	dead, seen := d.alone(c.DeadWhen), s.auto.seen(d.Lock.Target, d.Lock)
	held := s.now().Sub(seen.aloneSince)
	if len(dead) == 0 || seen.aloneSweeps < class.MinSweeps || held < c.AutoAfterOrDefault() {
		return ""
	}
	return fmt.Sprintf("auto: %s held over %d complete sweeps, for %s", strings.Join(dead, ", "), seen.aloneSweeps, held.Round(time.Second))
}

// decideAlone approves the agent's own request in its own name, if the caps allow it.
func (s *Service) decideAlone(ctx context.Context, id, because string) error {
	_, err := s.store.DecideRequest(ctx, id, func(r *locksteward.Request, others acts) ([]locksteward.Entry, error) {
		at := s.now().UTC().Truncate(time.Microsecond)
		if r.State != locksteward.RequestPending || len(r.Decisions) > 0 || due(*r, at) || !intact(*r) {
			return nil, conflict("request %s was decided meanwhile", r.ID)
		}
		r.Decisions = append(r.Decisions, locksteward.Decision{
			By: AgentName, Approve: true, Reason: because, At: at, EvidenceHash: r.EvidenceHash,
		})
		if err := advance(r, locksteward.RequestApproved); err != nil {
			return nil, err
		}
		r.ApprovedUntil = at.Add(s.settings.Load().cfg.ApprovalTTL)
		if err := s.reserve(others, true, *r); err != nil {
			return nil, err
		}
		e := entry(at, AgentName, ActionApprove, *r, because, detail{EvidenceHash: r.EvidenceHash, Identity: string(r.Evidence.Identity)})
		var rules locksteward.Message
		if len(r.Evidence.Findings) > 0 {
			names := make([]any, len(r.Evidence.Findings))
			for i, rule := range r.Evidence.Findings {
				names[i] = rule
			}
			rules = locksteward.NewMessage("release.alone-rules", locksteward.NewMessage("names", names...))
		}
		m := locksteward.NewMessage("release.alone", actWord(r.Evidence.Act), because, rules)
		return []locksteward.Entry{notify(e, locksteward.EventAuto, *r, m)}, nil
	})
	return err
}
