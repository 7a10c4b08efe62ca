package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// A bundle is one question about many locks: those of one dead host. Its list is
// frozen, one decision counts for all of them, and each is compared and executed on
// its own. Its requests have the ids <bundle>.1, <bundle>.2 and so on, and each
// says how many there are.

// MaxBundle is how many locks one bundle may have.
const MaxBundle = 200

// BundleInput is what a person asks for.
type BundleInput struct {
	Target string
	// Host is the host that is dead, as the locks' holders say it.
	Host string
	// Keys are the locks, exact bytes. One whose holder is on another host, or
	// that cannot be released, is left out.
	Keys   []string
	Reason string
}

// Bundle is requests that are decided on together.
type Bundle struct {
	ID string
	// Hash is what a decision on all of them signs; see [BundleHash].
	Hash     string
	Requests []locksteward.Request // in the order of their ids
	// LeftOut says by key why it has no request; known only to who made the bundle.
	LeftOut map[string]error
}

// bundleID is what the requests of a bundle have in common.
func bundleID(id string) string {
	before, _, _ := strings.Cut(id, ".")
	return before
}

func memberID(bundle string, n int) string { return fmt.Sprintf("%s.%d", bundle, n) }

// RequestBundle opens one request for each of the locks that can be released,
// to be decided on together. Errors as for [Service.Request]; one that is about a
// single lock leaves it out.
func (s *Service) RequestBundle(ctx context.Context, actor Actor, in BundleInput) (Bundle, error) {
	b, err := s.requestBundle(ctx, actor, in)
	if err != nil {
		return Bundle{}, s.refuse(ctx, actor, ActionRequest, in.Target, "", "", in.Reason, err)
	}
	return b, nil
}

func (s *Service) requestBundle(ctx context.Context, actor Actor, in BundleInput) (Bundle, error) {
	switch {
	case in.Host == "":
		return Bundle{}, invalid("host is empty; say which host is dead, as its locks' holders name it")
	case len(in.Keys) == 0 || len(in.Keys) > MaxBundle:
		return Bundle{}, invalid("a bundle has 1 to %d locks, got %d; ask for several bundles", MaxBundle, len(in.Keys))
	}
	if err := s.mayAskFor(ctx, actor, in.Target, RoleRequester); err != nil {
		return Bundle{}, err
	}
	b := Bundle{ID: "b-" + strings.TrimPrefix(newID(), "r-"), LeftOut: map[string]error{}}
	for _, key := range in.Keys {
		if _, twice := b.LeftOut[key]; twice || containsKey(b.Requests, key) {
			continue
		}
		r, err := s.prepare(ctx, actor, RoleRequester, RequestInput{Target: in.Target, Key: key, Reason: in.Reason},
			ask{id: memberID(b.ID, len(b.Requests)+1), bundle: 1})
		switch {
		case err == nil && r.Evidence.Holder.Host != in.Host:
			b.LeftOut[key] = refused("its holder is not on host %q", in.Host)
		case err == nil:
			b.Requests = append(b.Requests, r)
		case errors.Is(err, locksteward.ErrRefused), errors.Is(err, locksteward.ErrNotFound):
			b.LeftOut[key] = err
		default:
			return Bundle{}, err
		}
	}
	if len(b.Requests) == 0 {
		return Bundle{}, refused("none of the %d locks can be released: %s", len(in.Keys), b.LeftOut[in.Keys[0]])
	}
	for i := range b.Requests {
		b.Requests[i].Evidence.Bundle = len(b.Requests)
	}
	if err := s.open(ctx, ActionRequest, b.Requests); err != nil {
		return Bundle{}, err
	}
	b.Hash = BundleHash(b.Requests)
	return b, nil
}

func containsKey(list []locksteward.Request, key string) bool {
	for _, r := range list {
		if r.Evidence.Key == key {
			return true
		}
	}
	return false
}

// GetBundle returns the requests of a bundle; an unknown id is
// locksteward.ErrNotFound.
func (s *Service) GetBundle(ctx context.Context, id string) (Bundle, error) {
	b := Bundle{ID: bundleID(id)}
	for n, size := 1, 1; n <= size; n++ {
		r, err := s.store.GetRequest(ctx, memberID(b.ID, n))
		if n == 1 && errors.Is(err, locksteward.ErrNotFound) {
			return Bundle{}, notFound("there is no bundle %q; list the requests to see theirs", b.ID)
		}
		if err != nil {
			return Bundle{}, fmt.Errorf("bundle %s: %w", b.ID, err)
		}
		size = r.Evidence.Bundle
		b.Requests = append(b.Requests, r)
	}
	b.Hash = BundleHash(b.Requests)
	return b, nil
}

// ApproveBundle is [Service.Approve] for all requests of a bundle that are still
// open; decision.EvidenceHash is the bundle's. If the decision is refused for one of
// them, or the caps have no room for all, nothing is decided. Each is then decided,
// compared and executed on its own: the returned bundle has their outcomes, and one for
// which others took the room meanwhile is still pending.
func (s *Service) ApproveBundle(ctx context.Context, actor Actor, id string, decision Decision) (Bundle, error) {
	return s.decideBundle(ctx, actor, id, decision, true)
}

// DenyBundle is [Service.Deny] for all requests of a bundle that are still open.
func (s *Service) DenyBundle(ctx context.Context, actor Actor, id string, decision Decision) (Bundle, error) {
	return s.decideBundle(ctx, actor, id, decision, false)
}

func (s *Service) decideBundle(ctx context.Context, actor Actor, id string, decision Decision, approve bool) (Bundle, error) {
	b, err := s.GetBundle(ctx, id)
	if err != nil {
		return Bundle{}, err
	}
	action := ActionDeny
	if approve {
		action = ActionApprove
	}
	if err := s.mayDecideBundle(ctx, b, actor, decision, approve); err != nil {
		return Bundle{}, s.refuse(ctx, actor, action, b.Requests[0].Evidence.Target, "", b.ID, decision.Reason, err)
	}
	actor.bundled = true
	var errs []error
	for _, r := range b.Requests {
		if r.State.Final() || r.State == locksteward.RequestExecuting {
			continue
		}
		single := decision
		single.EvidenceHash = r.EvidenceHash
		if approve {
			_, err = s.Approve(ctx, actor, r.ID, single)
		} else {
			_, err = s.Deny(ctx, actor, r.ID, single)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	after, err := s.GetBundle(ctx, id)
	if err != nil {
		return Bundle{}, err
	}
	return after, errors.Join(errs...)
}

// mayDecideBundle checks a decision against all open requests of a bundle without
// writing anything.
func (s *Service) mayDecideBundle(ctx context.Context, b Bundle, actor Actor, decision Decision, approve bool) error {
	if approve && decision.EvidenceHash == "" {
		return invalid("evidence hash is missing: an approval signs what was seen; look at bundle %s and give its hash", b.ID)
	}
	if decision.EvidenceHash != "" && decision.EvidenceHash != b.Hash {
		return conflict("the hash is not that of bundle %s; look at it again and decide on what it shows", b.ID)
	}
	at := s.now()
	open := 0
	var decided []locksteward.Request // by this decision
	actor.bundled = true
	for _, r := range b.Requests {
		if r.State.Final() || r.State == locksteward.RequestExecuting {
			continue
		}
		open++
		if err := s.first(ctx, actor, r, decision, approve); err != nil {
			return err
		}
		if due(r, at) {
			continue
		}
		single, try := decision, r
		single.EvidenceHash = r.EvidenceHash
		try.Decisions = append([]locksteward.Decision(nil), r.Decisions...)
		if _, err := s.addDecision(&try, actor, single, approve, at); err != nil {
			return fmt.Errorf("lock %q: %w", locksteward.DisplayKey(r.Evidence.Key), err)
		}
		if r.State == locksteward.RequestPending && try.State == locksteward.RequestApproved {
			decided = append(decided, try)
		}
	}
	if open == 0 {
		return conflict("bundle %s is over already; request again for what is still stuck", b.ID)
	}
	if len(decided) == 0 {
		return nil
	}
	return s.reserve(func(since time.Time) ([]locksteward.Request, error) { return s.store.ListActs(ctx, since) }, false, decided...)
}
