package agent

import (
	"context"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/cluster"
	"github.com/locksteward/locksteward/internal/cluster/remote"
	"github.com/locksteward/locksteward/internal/lockview"
)

// call is a [cluster.Method] of the agent.
type call[A, R any] struct {
	name   string
	target func(in A) string
	run    func(a *Agent, ctx context.Context, in A) (R, error)
}

func (c call[A, R]) of(a *Agent) cluster.Method[A, R] {
	return cluster.Method[A, R]{Name: c.name, Target: c.target, Run: func(ctx context.Context, in A) (R, error) { return c.run(a, ctx, in) }}
}

// forward is [cluster.Forward].
func forward[A, R any](ctx context.Context, a *Agent, c call[A, R], in A) (R, error) {
	return cluster.Forward(ctx, a.router, c.of(a), in)
}

// forwardRead is [cluster.ForwardRead].
func forwardRead[A, R any](ctx context.Context, a *Agent, c call[A, R], in A) (R, error) {
	return cluster.ForwardRead(ctx, a.router, c.of(a), in)
}

func serve[A, R any](a *Agent, c call[A, R]) { cluster.Serve(a.router, c.of(a)) }

// The inputs and answers of calls.
type (
	lockInput struct {
		Target string
		DB     int
		Key    string
		Limit  int
	}
	explainInput struct {
		Lock locksteward.Lock
		Lang string
	}
	// releaseInput is a person's decision on a request, or a request.
	releaseInput struct {
		Target string // of ID, or of In
		Actor  console.Actor
		ID     string
		Reason string
		Word   console.Decision
		In     console.ReleaseInput
		// Delay is In.LockDelay, HasDelay whether there is one.
		Delay    time.Duration
		HasDelay bool
	}
	bundleInput struct {
		Actor console.Actor
		In    console.BundleInput
		Named bool // In.Keys is not nil
	}
	pauseInput struct {
		Target string
		Pause  locksteward.Pause
		By     string
	}
	reportInput struct {
		Target, Class string
		Since         time.Time
	}
)

func ofLock(in lockInput) string { return in.Target }

func ofRelease(in releaseInput) string { return in.Target }

// input returns the input of a request.
func (in releaseInput) input() console.ReleaseInput {
	out := in.In
	out.LockDelay = nil
	if in.HasDelay {
		out.LockDelay = &in.Delay
	}
	return out
}

// newReleaseInput returns a request for a release as it is sent.
func newReleaseInput(actor console.Actor, in console.ReleaseInput, w console.Decision) releaseInput {
	out := releaseInput{Target: in.Target, Actor: actor, In: in, Word: w}
	if in.LockDelay != nil {
		out.Delay, out.HasDelay = *in.LockDelay, true
		out.In.LockDelay = nil
	}
	return out
}

// The calls about one target.
var (
	callLock = call[lockInput, locksteward.Lock]{"lock", ofLock, func(a *Agent, ctx context.Context, in lockInput) (locksteward.Lock, error) {
		return a.lock(ctx, in.Target, in.DB, in.Key)
	}}
	callExplain = call[explainInput, cluster.JSON[[]api.Verdict]]{"explain", func(in explainInput) string { return in.Lock.Target }, func(a *Agent, _ context.Context, in explainInput) (cluster.JSON[[]api.Verdict], error) {
		return cluster.JSON[[]api.Verdict]{V: a.explain(in.Lock, in.Lang)}, nil
	}}
	callEvents = call[lockInput, cluster.JSON[[]api.LockEvent]]{"lock-events", ofLock, func(a *Agent, ctx context.Context, in lockInput) (cluster.JSON[[]api.LockEvent], error) {
		out, err := a.lockEvents(ctx, in.Target, in.DB, in.Key, in.Limit)
		return cluster.JSON[[]api.LockEvent]{V: out}, err
	}}
	callReport = call[reportInput, cluster.JSON[api.Report]]{"report", func(in reportInput) string { return in.Target }, func(a *Agent, ctx context.Context, in reportInput) (cluster.JSON[api.Report], error) {
		out, err := a.report(ctx, in.Target, in.Class, in.Since)
		return cluster.JSON[api.Report]{V: out}, err
	}}
	callPossible = call[explainInput, console.Possible]{"possible", func(in explainInput) string { return in.Lock.Target }, func(a *Agent, _ context.Context, in explainInput) (console.Possible, error) {
		p := a.releases.Possible(in.Lock)
		return console.Possible{Refusal: p.Release, NoPlaceholder: p.Placeholder, NoUndo: p.Undo}, nil
	}}
	callPause = call[pauseInput, []string]{"pause", func(in pauseInput) string { return in.Target }, func(a *Agent, ctx context.Context, in pauseInput) ([]string, error) {
		return a.pause(ctx, in.Target, in.Pause)
	}}
	callResume = call[pauseInput, []string]{"resume", func(in pauseInput) string { return in.Target }, func(a *Agent, ctx context.Context, in pauseInput) ([]string, error) {
		return a.resume(ctx, in.Target, in.By)
	}}
)

// The calls about releases.
var (
	callRequest = requestCall("request", func(r requests, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return r.request(ctx, in.Actor, in.input())
	})
	callBreakGlass = requestCall("break-glass", func(r requests, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return r.breakGlass(ctx, in.Actor, in.input(), in.Word)
	})
	callApprove = requestCall("approve", func(r requests, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return r.approve(ctx, in.Actor, in.ID, in.Word)
	})
	callDeny = requestCall("deny", func(r requests, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return r.deny(ctx, in.Actor, in.ID, in.Word)
	})
	callUndo = requestCall("undo", func(r requests, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return r.undo(ctx, in.Actor, in.ID, in.Reason)
	})
	callLift = requestCall("lift", func(r requests, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return r.lift(ctx, in.Actor, in.ID, in.Reason)
	})
	callDryRun = call[releaseInput, cluster.JSON[api.Preview]]{"dry-run", ofRelease, func(a *Agent, ctx context.Context, in releaseInput) (cluster.JSON[api.Preview], error) {
		out, err := requests{a, a.releases}.dryRun(ctx, in.Actor, in.input())
		return cluster.JSON[api.Preview]{V: out}, err
	}}
	callPreview = call[releaseInput, cluster.JSON[api.Preview]]{"preview", ofRelease, func(a *Agent, ctx context.Context, in releaseInput) (cluster.JSON[api.Preview], error) {
		out, err := requests{a, a.releases}.preview(ctx, in.ID)
		return cluster.JSON[api.Preview]{V: out}, err
	}}
	callRequestBundle = call[bundleInput, console.Bundle]{"request-bundle", func(in bundleInput) string { return in.In.Target }, func(a *Agent, ctx context.Context, in bundleInput) (console.Bundle, error) {
		if in.Named && in.In.Keys == nil {
			in.In.Keys = []string{}
		}
		return requests{a, a.releases}.requestBundle(ctx, in.Actor, in.In)
	}}
	callApproveBundle = bundleCall("approve-bundle", requests.approveBundle)
	callDenyBundle    = bundleCall("deny-bundle", requests.denyBundle)
)

func requestCall(name string, do func(requests, context.Context, releaseInput) (locksteward.Request, error)) call[releaseInput, locksteward.Request] {
	return call[releaseInput, locksteward.Request]{name, ofRelease, func(a *Agent, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return do(requests{a, a.releases}, ctx, in)
	}}
}

func bundleCall(name string, do func(requests, context.Context, console.Actor, string, console.Decision) (console.Bundle, error)) call[releaseInput, console.Bundle] {
	return call[releaseInput, console.Bundle]{name, ofRelease, func(a *Agent, ctx context.Context, in releaseInput) (console.Bundle, error) {
		return do(requests{a, a.releases}, ctx, in.Actor, in.ID, in.Word)
	}}
}

// Names of the calls about all that a replica works on.
const (
	callList     = "locks"
	callGraph    = "graph"
	callResolved = "resolved"
)

// serveCalls serves the calls of other replicas. It must be called before the member runs.
func (a *Agent) serveCalls() {
	serve(a, callLock)
	serve(a, callExplain)
	serve(a, callEvents)
	serve(a, callReport)
	serve(a, callPossible)
	serve(a, callPause)
	serve(a, callResume)
	serve(a, callRequest)
	serve(a, callBreakGlass)
	serve(a, callApprove)
	serve(a, callDeny)
	serve(a, callUndo)
	serve(a, callLift)
	serve(a, callDryRun)
	serve(a, callPreview)
	serve(a, callRequestBundle)
	serve(a, callApproveBundle)
	serve(a, callDenyBundle)
	p := a.member.Peers()
	cluster.Handle(p, callList, func(_ context.Context, f console.LockFilter) (lockview.Page, error) { return a.ownLocks(f) })
	cluster.Handle(p, callGraph, func(_ context.Context, in lockInput) (cluster.JSON[api.Graph], error) {
		return cluster.JSON[api.Graph]{V: a.ownGraph(in.Target)}, nil
	})
	cluster.Handle(p, callResolved, func(_ context.Context, in lockInput) ([]locksteward.Finding, error) {
		if f, ok := a.resolved.get(in.Key); ok {
			return []locksteward.Finding{f}, nil
		}
		return nil, nil
	})
}

// remoteLocks returns the pages of the other replicas.
func (a *Agent) remoteLocks(filter console.LockFilter) []lockview.Page {
	return remote.CallAll[console.LockFilter, lockview.Page](a.remote, filter.Target, callList, filter)
}

// remoteGraphs returns the graphs of the other replicas.
func (a *Agent) remoteGraphs(target string) []api.Graph {
	var out []api.Graph
	for _, g := range remote.CallAll[lockInput, cluster.JSON[api.Graph]](a.remote, target, callGraph, lockInput{Target: target}) {
		out = append(out, g.V)
	}
	return out
}

// remoteResolved returns a finding that was resolved a while ago, if another replica has it.
func (a *Agent) remoteResolved(fingerprint string) (locksteward.Finding, bool) {
	for _, found := range remote.CallAll[lockInput, []locksteward.Finding](a.remote, "", callResolved, lockInput{Key: fingerprint}) {
		if len(found) > 0 {
			return found[0], true
		}
	}
	return locksteward.Finding{}, false
}
