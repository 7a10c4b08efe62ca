package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/replicas"
	"github.com/locksteward/locksteward/store"
)

// holderWithin is how long a question about a target waits for a replica that works
// on it: a take-over is a matter of seconds.
const holderWithin = 5 * time.Second

// call is something that the replica does which has the target.
type call[A, R any] struct {
	name string
	// of is the target of a question.
	of func(in A) string
	do func(a *Agent, ctx context.Context, in A) (R, error)
}

// ask has the right replica do it. Where a target has just moved it is asked for
// again, since whoever does not have a target does nothing; so is a replica that could
// not be reached.
func ask[A, R any](ctx context.Context, a *Agent, c call[A, R], in A) (R, error) {
	return askAgain(ctx, a, c, in, replicas.NotSent, fleetWithin)
}

// read is ask for what changes nothing: of a replica that does not answer it is asked
// until it does, or until another one has its target.
func read[A, R any](ctx context.Context, a *Agent, c call[A, R], in A) (R, error) {
	return askAgain(ctx, a, c, in, replicas.Silent, movedAgain)
}

// askAgain asks until there is an answer that again does not want asked for again. A
// replica that does not have the target any more has grace to answer still.
func askAgain[A, R any](ctx context.Context, a *Agent, c call[A, R], in A, again func(error) bool, grace time.Duration) (R, error) {
	target := c.of(in)
	if a.keeper == nil || !a.configured(target) {
		return c.do(a, ctx, in)
	}
	wait, cancel := context.WithTimeout(ctx, holderWithin)
	defer cancel()
	for {
		var none R
		to, mine, err := a.keeper.AwaitHolder(wait, target)
		if err != nil {
			return none, api.NewProblem(api.CodeUnavailable, fmt.Sprintf("target %s: no replica works on it now; ask again in a few seconds, and look at the logs of the replicas if that lasts", target))
		}
		var out R
		if mine {
			out, err = here(ctx, a, c, in)
		} else {
			bound, cancel := a.asLongAs(ctx, target, to, grace)
			out, err = replicas.Call[A, R](bound, a.keeper.Peers(), to, c.name, in)
			cancel()
		}
		moved := a.movedFrom(target, to)
		if p, ok := errors.AsType[*api.Problem](err); !again(err) && (!ok || p.Code != api.CodeMisdirected) {
			if moved && replicas.Silent(err) {
				err = api.NewProblem(api.CodeUnavailable, fmt.Sprintf("replica %s ended while it did this, and another one has target %s now: look what became of it, and do it again if nothing did", to.Name, target))
			}
			return out, err
		}
		if moved {
			continue
		}
		select {
		case <-wait.Done():
			return none, err
		case <-time.After(movedAgain):
		}
	}
}

// movedFrom says that another replica than this one has a target.
func (a *Agent) movedFrom(target string, than store.Replica) bool {
	now, _, ok := a.keeper.Holder(target)
	return ok && now.ID != than.ID
}

// asLongAs ends with ctx, or a while after another replica has the target: one that
// hangs does not answer.
func (a *Agent) asLongAs(ctx context.Context, target string, to store.Replica, grace time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(movedAgain)
		defer tick.Stop()
		var since time.Time
		for since.IsZero() || time.Since(since) < grace {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if since.IsZero() && a.movedFrom(target, to) {
				since = time.Now()
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// movedAgain is how long after a wrong turn the holder is looked for again.
const movedAgain = 100 * time.Millisecond

// here does it if this replica has the target.
func here[A, R any](ctx context.Context, a *Agent, c call[A, R], in A) (R, error) {
	target := c.of(in)
	moved := api.NewProblem(api.CodeMisdirected, "target "+target+" moved to another replica")
	if _, err := a.watched(target); err != nil {
		var none R
		return none, moved
	}
	out, err := c.do(a, ctx, in)
	if errors.Is(err, store.ErrLeaseLost) {
		return out, moved // nothing was written
	}
	if errors.Is(err, locksteward.ErrNotFound) {
		if _, gone := a.watched(target); gone != nil {
			return out, moved // it went meanwhile: nothing was done
		}
	}
	return out, err
}

// answer serves the calls of other replicas.
func answer[A, R any](a *Agent, c call[A, R]) {
	replicas.Handle(a.keeper.Peers(), c.name, func(ctx context.Context, in A) (R, error) { return here(ctx, a, c, in) })
}

// configured says whether a target is in the configuration.
func (a *Agent) configured(target string) bool {
	return slices.ContainsFunc(a.current().cfg.Targets, func(t config.Target) bool { return t.Name == target })
}

// asJSON carries what is made for JSON: gob does not tell a pointer to nothing from
// none.
type asJSON[T any] struct{ V T }

// GobEncode is for encoding/gob.
func (j asJSON[T]) GobEncode() ([]byte, error) { return json.Marshal(j.V) }

// GobDecode is for encoding/gob.
func (j *asJSON[T]) GobDecode(raw []byte) error { return json.Unmarshal(raw, &j.V) }

// What is sent with calls.
type (
	lockAsked struct {
		Target string
		DB     int
		Key    string
		Limit  int
	}
	explainAsked struct {
		Lock locksteward.Lock
		Lang string
	}
	// releaseAsked is a person's word on a request, or for one.
	releaseAsked struct {
		Target string // of ID, or of In
		Actor  console.Actor
		ID     string
		Reason string
		Word   console.Word
		In     console.ReleaseInput
		// Delay is In.LockDelay, HasDelay whether there is one.
		Delay    time.Duration
		HasDelay bool
	}
	bundleAsked struct {
		Actor console.Actor
		In    console.BundleInput
		Named bool // In.Keys is not nil
	}
	pauseAsked struct {
		Target string
		Pause  locksteward.Pause
		By     string
	}
	reportAsked struct {
		Target, Class string
		Since         time.Time
	}
	// listed is part of a list of locks with the place of each.
	listed struct {
		Page console.LockPage
		At   []console.LockPosition
		More bool
	}
	// targetsTold are the targets of a replica, of which of them complete sweeps are
	// missing, and which of them the last sweep found down; those of which none has
	// ended are not in Down.
	targetsTold struct {
		Targets []api.Target
		Stale   []string
		Down    map[string]bool
	}
	// nothing is sent where nothing is to be said: gob wants a field.
	nothing struct{ Nothing bool }
)

func ofLock(in lockAsked) string { return in.Target }

func ofRelease(in releaseAsked) string { return in.Target }

// input is what is asked for, as the service of releases takes it.
func (in releaseAsked) input() console.ReleaseInput {
	out := in.In
	out.LockDelay = nil
	if in.HasDelay {
		out.LockDelay = &in.Delay
	}
	return out
}

// wanted is a wish for a release as it is sent.
func wanted(actor console.Actor, in console.ReleaseInput, w console.Word) releaseAsked {
	out := releaseAsked{Target: in.Target, Actor: actor, In: in, Word: w}
	if in.LockDelay != nil {
		out.Delay, out.HasDelay = *in.LockDelay, true
		out.In.LockDelay = nil
	}
	return out
}

// The calls about one target.
var (
	callLock = call[lockAsked, locksteward.Lock]{"lock", ofLock, func(a *Agent, ctx context.Context, in lockAsked) (locksteward.Lock, error) {
		return a.lock(ctx, in.Target, in.DB, in.Key)
	}}
	callExplain = call[explainAsked, asJSON[[]api.Verdict]]{"explain", func(in explainAsked) string { return in.Lock.Target }, func(a *Agent, _ context.Context, in explainAsked) (asJSON[[]api.Verdict], error) {
		return asJSON[[]api.Verdict]{a.explain(in.Lock, in.Lang)}, nil
	}}
	callEvents = call[lockAsked, asJSON[[]api.LockEvent]]{"lock-events", ofLock, func(a *Agent, ctx context.Context, in lockAsked) (asJSON[[]api.LockEvent], error) {
		out, err := a.lockEvents(ctx, in.Target, in.DB, in.Key, in.Limit)
		return asJSON[[]api.LockEvent]{out}, err
	}}
	callReport = call[reportAsked, asJSON[api.Report]]{"report", func(in reportAsked) string { return in.Target }, func(a *Agent, ctx context.Context, in reportAsked) (asJSON[api.Report], error) {
		out, err := a.report(ctx, in.Target, in.Class, in.Since)
		return asJSON[api.Report]{out}, err
	}}
	callPossible = call[explainAsked, console.Possible]{"possible", func(in explainAsked) string { return in.Lock.Target }, func(a *Agent, _ context.Context, in explainAsked) (console.Possible, error) {
		p := a.releases.Possible(in.Lock)
		return console.Possible{Refusal: p.Release, NoStand: p.Stand, NoUndo: p.Undo}, nil
	}}
	callPause = call[pauseAsked, []string]{"pause", func(in pauseAsked) string { return in.Target }, func(a *Agent, ctx context.Context, in pauseAsked) ([]string, error) {
		return a.pause(ctx, in.Target, in.Pause)
	}}
	callResume = call[pauseAsked, []string]{"resume", func(in pauseAsked) string { return in.Target }, func(a *Agent, ctx context.Context, in pauseAsked) ([]string, error) {
		return a.resume(ctx, in.Target, in.By)
	}}
)

// The calls about releases.
var (
	callRequest = requestCall("request", func(r requests, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return r.request(ctx, in.Actor, in.input())
	})
	callBreakGlass = requestCall("break-glass", func(r requests, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return r.breakGlass(ctx, in.Actor, in.input(), in.Word)
	})
	callApprove = requestCall("approve", func(r requests, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return r.approve(ctx, in.Actor, in.ID, in.Word)
	})
	callDeny = requestCall("deny", func(r requests, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return r.deny(ctx, in.Actor, in.ID, in.Word)
	})
	callUndo = requestCall("undo", func(r requests, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return r.undo(ctx, in.Actor, in.ID, in.Reason)
	})
	callLift = requestCall("lift", func(r requests, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return r.lift(ctx, in.Actor, in.ID, in.Reason)
	})
	callDryRun = call[releaseAsked, asJSON[api.Preview]]{"dry-run", ofRelease, func(a *Agent, ctx context.Context, in releaseAsked) (asJSON[api.Preview], error) {
		out, err := requests{a, a.releases}.dryRun(ctx, in.Actor, in.input())
		return asJSON[api.Preview]{out}, err
	}}
	callPreview = call[releaseAsked, asJSON[api.Preview]]{"preview", ofRelease, func(a *Agent, ctx context.Context, in releaseAsked) (asJSON[api.Preview], error) {
		out, err := requests{a, a.releases}.preview(ctx, in.ID)
		return asJSON[api.Preview]{out}, err
	}}
	callRequestBundle = call[bundleAsked, console.Bundle]{"request-bundle", func(in bundleAsked) string { return in.In.Target }, func(a *Agent, ctx context.Context, in bundleAsked) (console.Bundle, error) {
		if in.Named && in.In.Keys == nil {
			in.In.Keys = []string{}
		}
		return requests{a, a.releases}.requestBundle(ctx, in.Actor, in.In)
	}}
	callApproveBundle = bundleCall("approve-bundle", requests.approveBundle)
	callDenyBundle    = bundleCall("deny-bundle", requests.denyBundle)
)

func requestCall(name string, do func(requests, context.Context, releaseAsked) (locksteward.Request, error)) call[releaseAsked, locksteward.Request] {
	return call[releaseAsked, locksteward.Request]{name, ofRelease, func(a *Agent, ctx context.Context, in releaseAsked) (locksteward.Request, error) {
		return do(requests{a, a.releases}, ctx, in)
	}}
}

func bundleCall(name string, do func(requests, context.Context, console.Actor, string, console.Word) (console.Bundle, error)) call[releaseAsked, console.Bundle] {
	return call[releaseAsked, console.Bundle]{name, ofRelease, func(a *Agent, ctx context.Context, in releaseAsked) (console.Bundle, error) {
		return do(requests{a, a.releases}, ctx, in.Actor, in.ID, in.Word)
	}}
}

// Names of the calls that are about all that a replica has.
const (
	callTargets  = "targets"
	callList     = "locks"
	callGraph    = "graph"
	callResolved = "resolved"
	callWake     = "wake"
)

// answerAll serves every call. It comes before the keeper runs.
func (a *Agent) answerAll() {
	answer(a, callLock)
	answer(a, callExplain)
	answer(a, callEvents)
	answer(a, callReport)
	answer(a, callPossible)
	answer(a, callPause)
	answer(a, callResume)
	answer(a, callRequest)
	answer(a, callBreakGlass)
	answer(a, callApprove)
	answer(a, callDeny)
	answer(a, callUndo)
	answer(a, callLift)
	answer(a, callDryRun)
	answer(a, callPreview)
	answer(a, callRequestBundle)
	answer(a, callApproveBundle)
	answer(a, callDenyBundle)
	answer(a, callInherit)
	p := a.keeper.Peers()
	replicas.Handle(p, callTargets, func(context.Context, nothing) (asJSON[targetsTold], error) {
		return asJSON[targetsTold]{targetsTold{a.ownTargets(), a.pulse(time.Now()).missing(), a.downTargets()}}, nil
	})
	replicas.Handle(p, callList, func(_ context.Context, f console.LockFilter) (listed, error) { return a.ownLocks(f) })
	replicas.Handle(p, callGraph, func(_ context.Context, in lockAsked) (asJSON[api.Graph], error) {
		g, err := a.ownGraph(in.Target)
		return asJSON[api.Graph]{g}, err
	})
	replicas.Handle(p, callResolved, func(_ context.Context, in lockAsked) ([]locksteward.Finding, error) {
		if f, ok := a.resolved.get(in.Key); ok {
			return []locksteward.Finding{f}, nil
		}
		return nil, nil
	})
	replicas.Handle(p, callWake, func(context.Context, nothing) (nothing, error) {
		if a.house.opened() {
			a.alerts.Wake()
		}
		return nothing{}, nil
	})
}

// wake has the replica that sends look at what is to be sent.
func (a *Agent) wake() {
	if a.keeper == nil || a.house.opened() {
		a.alerts.Wake()
		return
	}
	a.fleet.wake()
}

// houseHolder is the replica that has the house, if that is another one.
func (a *Agent) houseHolder() (store.Replica, bool) {
	to, mine, ok := a.keeper.Holder(store.House)
	return to, ok && !mine
}
