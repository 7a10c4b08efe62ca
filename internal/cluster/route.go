package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/store"
)

const (
	// ownerTimeout bounds how long a method waits for an owner of its target: a take-over takes seconds.
	ownerTimeout = 5 * time.Second
	// ownerPoll is the interval of looking for another owner of a target after one that did not answer.
	ownerPoll = 100 * time.Millisecond
	// ownerGrace is for how long a replica that lost a target may still answer a [Forward].
	ownerGrace = 2 * time.Second
)

// Method is something that the owner of a target does, on behalf of any replica. All replicas must have the same methods.
type Method[A, R any] struct {
	Name string
	// Target returns the target that a call is about.
	Target func(in A) string
	// Run does it on the owner.
	Run func(ctx context.Context, in A) (R, error)
}

// Router finds the replicas that own the targets of methods.
type Router struct {
	member     *Member
	configured func(target string) bool
	runsHere   func(target string) bool
}

// NewRouter returns a Router. Configured reports whether a target is in the configuration, and runsHere whether this
// replica works on it.
func NewRouter(m *Member, configured, runsHere func(target string) bool) *Router {
	return &Router{member: m, configured: configured, runsHere: runsHere}
}

// Serve answers calls of a method by other replicas. It must be called before [Member.Run].
func Serve[A, R any](r *Router, m Method[A, R]) {
	Handle(r.member.peers, m.Name, func(ctx context.Context, in A) (R, error) { return runHere(ctx, r, m, in) })
}

// Forward has the owner of the target run a method. If the target moved to another owner meanwhile, or the call did not reach
// the owner, it is repeated: a replica that does not own a target does nothing. With a nil Router, and for a target that
// is not configured, the method runs here.
func Forward[A, R any](ctx context.Context, r *Router, m Method[A, R], in A) (R, error) {
	return forward(ctx, r, m, in, NotSent, ownerGrace)
}

// ForwardRead is [Forward] for methods that change nothing: a call that is not answered is repeated, too, until the owner
// answers or another one does.
func ForwardRead[A, R any](ctx context.Context, r *Router, m Method[A, R], in A) (R, error) {
	return forward(ctx, r, m, in, NoAnswer, ownerPoll)
}

// forward repeats a call while repeatable reports true of its error. A replica that lost the target has grace to answer.
func forward[A, R any](ctx context.Context, r *Router, m Method[A, R], in A, repeatable func(error) bool, grace time.Duration) (R, error) {
	target := m.Target(in)
	if r == nil || !r.configured(target) {
		return m.Run(ctx, in)
	}
	wait, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	for {
		var none R
		to, self, err := r.member.AwaitOwner(wait, target)
		if err != nil {
			return none, api.NewProblem(api.CodeUnavailable, fmt.Sprintf("target %s: no replica works on it now; try again in a few seconds, and check the logs of the replicas if that lasts", target))
		}
		var out R
		if self {
			out, err = runHere(ctx, r, m, in)
		} else {
			bound, cancel := r.whileOwner(ctx, target, to, grace)
			out, err = Call[A, R](bound, r.member.peers, to, m.Name, in)
			cancel()
		}
		moved := r.movedFrom(target, to)
		if p, ok := errors.AsType[*api.Problem](err); !repeatable(err) && (!ok || p.Code != api.CodeMisdirected) {
			if moved && NoAnswer(err) {
				err = api.NewProblem(api.CodeUnavailable, fmt.Sprintf("replica %s ended while it did this, and another replica works on target %s now: check its outcome before retrying", to.Name, target))
			}
			return out, err
		}
		if moved {
			continue
		}
		select {
		case <-wait.Done():
			return none, err
		case <-time.After(ownerPoll):
		}
	}
}

// movedFrom reports whether a target has another owner than a replica.
func (r *Router) movedFrom(target string, from store.Replica) bool {
	now, _, ok := r.member.Owner(target)
	return ok && now.ID != from.ID
}

// whileOwner returns a context that ends with ctx, or grace after a target has moved from a replica: one that hangs does
// not answer.
func (r *Router) whileOwner(ctx context.Context, target string, from store.Replica, grace time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(ownerPoll)
		defer tick.Stop()
		var moved time.Time
		for moved.IsZero() || time.Since(moved) < grace {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if moved.IsZero() && r.movedFrom(target, from) {
				moved = time.Now()
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// runHere runs a method if this replica works on the target. Else the error is a problem with [api.CodeMisdirected], and
// nothing was done.
func runHere[A, R any](ctx context.Context, r *Router, m Method[A, R], in A) (R, error) {
	target := m.Target(in)
	moved := api.NewProblem(api.CodeMisdirected, "target "+target+" moved to another replica")
	if !r.runsHere(target) {
		var none R
		return none, moved
	}
	out, err := m.Run(ctx, in)
	if errors.Is(err, store.ErrLeaseLost) {
		return out, moved // nothing was written
	}
	if errors.Is(err, locksteward.ErrNotFound) && !r.runsHere(target) {
		return out, moved // it moved meanwhile
	}
	return out, err
}

// JSON is sent between replicas as JSON: gob does not distinguish a pointer to a zero value from nil.
type JSON[T any] struct{ V T }

// GobEncode implements [encoding/gob.GobEncoder].
func (j JSON[T]) GobEncode() ([]byte, error) { return json.Marshal(j.V) }

// GobDecode implements [encoding/gob.GobDecoder].
func (j *JSON[T]) GobDecode(raw []byte) error { return json.Unmarshal(raw, &j.V) }
