package backend

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

// call is a [cluster.Method] of a backend.
type call[A, R any] struct {
	name   string
	target func(in A) string
	run    func(b *Backend, ctx context.Context, in A) (R, error)
}

func (c call[A, R]) of(b *Backend) cluster.Method[A, R] {
	return cluster.Method[A, R]{Name: c.name, Target: c.target, Run: func(ctx context.Context, in A) (R, error) { return c.run(b, ctx, in) }}
}

// forward is [cluster.Forward].
func forward[A, R any](ctx context.Context, b *Backend, c call[A, R], in A) (R, error) {
	return cluster.Forward(ctx, b.deps.Router, c.of(b), in)
}

// forwardRead is [cluster.ForwardRead].
func forwardRead[A, R any](ctx context.Context, b *Backend, c call[A, R], in A) (R, error) {
	return cluster.ForwardRead(ctx, b.deps.Router, c.of(b), in)
}

func serve[A, R any](b *Backend, c call[A, R]) { cluster.Serve(b.deps.Router, c.of(b)) }

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
	callLock = call[lockInput, locksteward.Lock]{"lock", ofLock, func(b *Backend, ctx context.Context, in lockInput) (locksteward.Lock, error) {
		return b.lock(ctx, in.Target, in.DB, in.Key)
	}}
	callExplain = call[explainInput, cluster.JSON[[]api.Verdict]]{"explain", func(in explainInput) string { return in.Lock.Target }, func(b *Backend, _ context.Context, in explainInput) (cluster.JSON[[]api.Verdict], error) {
		return cluster.JSON[[]api.Verdict]{V: b.explain(in.Lock, in.Lang)}, nil
	}}
	callEvents = call[lockInput, cluster.JSON[[]api.LockEvent]]{"lock-events", ofLock, func(b *Backend, ctx context.Context, in lockInput) (cluster.JSON[[]api.LockEvent], error) {
		out, err := b.lockEvents(ctx, in.Target, in.DB, in.Key, in.Limit)
		return cluster.JSON[[]api.LockEvent]{V: out}, err
	}}
	callReport = call[reportInput, cluster.JSON[api.Report]]{"report", func(in reportInput) string { return in.Target }, func(b *Backend, ctx context.Context, in reportInput) (cluster.JSON[api.Report], error) {
		out, err := b.report(ctx, in.Target, in.Class, in.Since)
		return cluster.JSON[api.Report]{V: out}, err
	}}
	callPossible = call[explainInput, console.Possible]{"possible", func(in explainInput) string { return in.Lock.Target }, func(b *Backend, _ context.Context, in explainInput) (console.Possible, error) {
		p := b.deps.Releases.Possible(in.Lock)
		return console.Possible{Refusal: p.Release, NoPlaceholder: p.Placeholder, NoUndo: p.Undo}, nil
	}}
	callPause = call[pauseInput, []string]{"pause", func(in pauseInput) string { return in.Target }, func(b *Backend, ctx context.Context, in pauseInput) ([]string, error) {
		return b.pause(ctx, in.Target, in.Pause)
	}}
	callResume = call[pauseInput, []string]{"resume", func(in pauseInput) string { return in.Target }, func(b *Backend, ctx context.Context, in pauseInput) ([]string, error) {
		return b.resume(ctx, in.Target, in.By)
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
	callDryRun = call[releaseInput, cluster.JSON[api.Preview]]{"dry-run", ofRelease, func(b *Backend, ctx context.Context, in releaseInput) (cluster.JSON[api.Preview], error) {
		out, err := requests{b, b.deps.Releases}.dryRun(ctx, in.Actor, in.input())
		return cluster.JSON[api.Preview]{V: out}, err
	}}
	callPreview = call[releaseInput, cluster.JSON[api.Preview]]{"preview", ofRelease, func(b *Backend, ctx context.Context, in releaseInput) (cluster.JSON[api.Preview], error) {
		out, err := requests{b, b.deps.Releases}.preview(ctx, in.ID)
		return cluster.JSON[api.Preview]{V: out}, err
	}}
	callRequestBundle = call[bundleInput, console.Bundle]{"request-bundle", func(in bundleInput) string { return in.In.Target }, func(b *Backend, ctx context.Context, in bundleInput) (console.Bundle, error) {
		if in.Named && in.In.Keys == nil {
			in.In.Keys = []string{}
		}
		return requests{b, b.deps.Releases}.requestBundle(ctx, in.Actor, in.In)
	}}
	callApproveBundle = bundleCall("approve-bundle", requests.approveBundle)
	callDenyBundle    = bundleCall("deny-bundle", requests.denyBundle)
)

func requestCall(name string, do func(requests, context.Context, releaseInput) (locksteward.Request, error)) call[releaseInput, locksteward.Request] {
	return call[releaseInput, locksteward.Request]{name, ofRelease, func(b *Backend, ctx context.Context, in releaseInput) (locksteward.Request, error) {
		return do(requests{b, b.deps.Releases}, ctx, in)
	}}
}

func bundleCall(name string, do func(requests, context.Context, console.Actor, string, console.Decision) (console.Bundle, error)) call[releaseInput, console.Bundle] {
	return call[releaseInput, console.Bundle]{name, ofRelease, func(b *Backend, ctx context.Context, in releaseInput) (console.Bundle, error) {
		return do(requests{b, b.deps.Releases}, ctx, in.Actor, in.ID, in.Word)
	}}
}

// Names of the calls about all that a replica works on.
const (
	callList     = "locks"
	callGraph    = "graph"
	callResolved = "resolved"
)

// ServeCalls serves the calls of other replicas. It must be called before the member runs.
func (b *Backend) ServeCalls() {
	serve(b, callLock)
	serve(b, callExplain)
	serve(b, callEvents)
	serve(b, callReport)
	serve(b, callPossible)
	serve(b, callPause)
	serve(b, callResume)
	serve(b, callRequest)
	serve(b, callBreakGlass)
	serve(b, callApprove)
	serve(b, callDeny)
	serve(b, callUndo)
	serve(b, callLift)
	serve(b, callDryRun)
	serve(b, callPreview)
	serve(b, callRequestBundle)
	serve(b, callApproveBundle)
	serve(b, callDenyBundle)
	p := b.deps.Member.Peers()
	cluster.Handle(p, callList, func(_ context.Context, f console.LockFilter) (lockview.Page, error) { return b.ownLocks(f) })
	cluster.Handle(p, callGraph, func(_ context.Context, in lockInput) (cluster.JSON[api.Graph], error) {
		return cluster.JSON[api.Graph]{V: b.ownGraph(in.Target)}, nil
	})
	cluster.Handle(p, callResolved, func(_ context.Context, in lockInput) ([]locksteward.Finding, error) {
		if f, ok := b.deps.Resolved.Get(in.Key); ok {
			return []locksteward.Finding{f}, nil
		}
		return nil, nil
	})
}

// remoteLocks returns the pages of the other replicas.
func (b *Backend) remoteLocks(filter console.LockFilter) []lockview.Page {
	return remote.CallAll[console.LockFilter, lockview.Page](b.deps.Remote, filter.Target, callList, filter)
}

// remoteGraphs returns the graphs of the other replicas.
func (b *Backend) remoteGraphs(target string) []api.Graph {
	var out []api.Graph
	for _, g := range remote.CallAll[lockInput, cluster.JSON[api.Graph]](b.deps.Remote, target, callGraph, lockInput{Target: target}) {
		out = append(out, g.V)
	}
	return out
}

// remoteResolved returns a finding that was resolved a while ago, if another replica has it.
func (b *Backend) remoteResolved(fingerprint string) (locksteward.Finding, bool) {
	for _, found := range remote.CallAll[lockInput, []locksteward.Finding](b.deps.Remote, "", callResolved, lockInput{Key: fingerprint}) {
		if len(found) > 0 {
			return found[0], true
		}
	}
	return locksteward.Finding{}, false
}
