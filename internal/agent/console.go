package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/internal/connect"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

// newConsole joins the console to what it shows and changes.
func (a *Agent) newConsole(cfg console.Config) (*console.Server, error) {
	return console.NewServer(a.log, cfg, console.Deps{
		Locks: a, Findings: everything{a}, Targets: a,
		Requests: requests{a, a.releases}, Releases: requests{a, a.releases},
		Audit: trail{a.store, a.trail}, Reloader: a, Pauser: a, Reports: a, Past: a, Stops: stops{a.releases}, Graphs: a, Guide: guide{a}, Sessions: sessions{a.store},
		Deliveries: deliveries{a}, Silences: silencing{a},
	})
}

// Lock reads one lock from Redis now.
func (a *Agent) Lock(ctx context.Context, target string, db int, key string) (locksteward.Lock, error) {
	return read(ctx, a, callLock, lockAsked{Target: target, DB: db, Key: key})
}

func (a *Agent) lock(ctx context.Context, target string, db int, key string) (locksteward.Lock, error) {
	w, err := a.watched(target)
	if err != nil {
		return locksteward.Lock{}, err
	}
	if err := w.ownDB(db); err != nil {
		return locksteward.Lock{}, err
	}
	l, err := w.scanner.Table().Refresh(ctx, key)
	return l, w.told(err)
}

// told gives the person who asked the reason why a target could not be read:
// else it would stand in the log alone.
func (w *watched) told(err error) error {
	if err == nil || api.ProblemFor(err).Code != api.CodeInternal {
		return err
	}
	return api.NewProblem(api.CodeUnavailable, "target "+w.target.Name+" could not be read: "+connect.Explain(err))
}

// stored gives the person who asked the reason why the store could not be used.
// Its sentences are made for people, and may say that a release was carried out
// and only not written down.
func stored(err error) error {
	if _, ok := errors.AsType[*store.Error](err); ok && api.ProblemFor(err).Code == api.CodeInternal {
		return api.NewProblem(api.CodeUnavailable, err.Error())
	}
	return err
}

// Explain says what each rule makes of a lock; nothing if the replica that knows does
// not answer.
func (a *Agent) Explain(l locksteward.Lock, lang string) []api.Verdict {
	ctx, cancel := context.WithTimeout(context.Background(), fleetWithin)
	defer cancel()
	out, err := read(ctx, a, callExplain, explainAsked{l, lang})
	if err != nil {
		a.log.Warn("what the rules make of a lock is not known", zap.String("target", l.Target), zap.Error(err))
	}
	return out.V
}

func (a *Agent) explain(l locksteward.Lock, lang string) []api.Verdict {
	var out []api.Verdict
	for _, v := range a.engine.Explain(l) {
		out = append(out, api.NewVerdict(v.Rule, string(v.Result), v.Reason, v.Finding, lang))
	}
	return out
}

// ownDB refuses another database than the one that is watched.
func (w *watched) ownDB(db int) error {
	if own := w.conn.DB(); db != own {
		return fmt.Errorf("%w: target %q watches database %d, not %d; watch that one as a target of its own", locksteward.ErrNotFound, w.target.Name, own, db)
	}
	return nil
}

// Targets are the targets with their health, in the order of the configuration.
func (a *Agent) Targets() []api.Target {
	a.mu.RLock()
	cfg := a.cfg.Targets
	a.mu.RUnlock()
	own := a.ownTargets()
	out := make([]api.Target, 0, len(cfg))
	for _, t := range cfg {
		n := slices.IndexFunc(own, func(o api.Target) bool { return o.Name == t.Name })
		if n >= 0 {
			out = append(out, own[n])
			continue
		}
		there := unseen(t, "it is not watched")
		if a.fleet != nil {
			there = a.fleet.shown(t)
		}
		out = append(out, there)
	}
	return out
}

// unseen is a target of which nothing is known but the configuration.
func unseen(t config.Target, why string) api.Target {
	out := api.Target{Name: t.Name, Nodes: []api.Node{}, Reason: why}
	if spec, err := connect.Parse(t.Redis); err == nil {
		out.DB, out.Mode = spec.DB, string(spec.Mode)
	}
	return out
}

// ownTargets are those that this replica works on.
func (a *Agent) ownTargets() []api.Target {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var out []api.Target
	for _, t := range a.cfg.Targets {
		w, ok := a.targets[t.Name]
		if !ok {
			continue
		}
		target := w.view()
		if a.keeper != nil {
			target.Replica = a.keeper.Me().Name
		}
		target.ReleaseEnabled = a.releases.Enabled(t.Name)
		target.Watch, target.Budget = watchView(w.scanner.WatchState()), budgetView(w.scanner.Stats())
		out = append(out, target)
	}
	return out
}

// view is the target with its sweeps.
func (w *watched) view() api.Target {
	// Before the last sweep: what ends in between is told as under way, not as
	// if it had never begun.
	sweeping := w.sweeping(time.Now())
	out := api.NewTarget(w.scanner.State())
	if swept, ok := w.lastSweep(); ok {
		out.LastSweep = &swept
	}
	out.Sweeping = sweeping
	return out
}

func watchView(s scanner.WatchState) *api.Watch {
	out := &api.Watch{
		Mode: string(s.Mode), Reason: s.Reason, BlindMs: s.Blind.Milliseconds(), Missed: s.Missed, Waiting: s.Waiting,
		Classes: make([]api.ClassWatch, 0, len(s.Classes)),
	}
	for _, c := range s.Classes {
		out.Classes = append(out.Classes, api.ClassWatch{Class: c.Class, Coverage: string(c.Coverage), Reason: c.Reason})
	}
	return out
}

func budgetView(s scanner.Stats) *api.Budget {
	out := &api.Budget{MaxServerShare: s.Share, ThrottledMs: map[string]int64{}, Degraded: append([]string{}, s.Degraded...)}
	for reason, waited := range s.Throttled {
		out.ThrottledMs[string(reason)] = waited.Milliseconds()
	}
	return out
}

// Classes are the classes in the order they match, the default last.
func (a *Agent) Classes() []api.Class {
	a.mu.RLock()
	classes := a.classes
	a.mu.RUnlock()
	all := classes.All()
	if c, ok := classes.Get(class.Default); ok {
		all = append(all, c)
	}
	out := make([]api.Class, 0, len(all))
	for _, c := range all {
		out = append(out, classView(c))
	}
	return out
}

// classView is a class with its defaults filled in.
func classView(c class.Class) api.Class {
	out := api.Class{
		Class: c.Name, Match: append([]string{}, c.Match...), Team: c.Team, RunbookURL: c.RunbookURL,
		TTL: string(c.TTL), MaxTTLMs: c.MaxTTLOrDefault().Milliseconds(), DeadWhen: append([]string{}, c.DeadWhen...),
		Release: string(c.ReleaseOrDefault()), Approvals: c.ApprovalsOrDefault(), SelfApproval: string(c.SelfApprovalOrDefault()),
	}
	out.MaxFailures = c.MaxFailuresOrDefault()
	for _, limit := range []struct {
		to   **int64
		from time.Duration
	}{{&out.ExpectMs, c.Expect}, {&out.WarnTTLBelowMs, c.WarnTTLBelow}, {&out.MaxWaitMs, c.MaxWait}} {
		if limit.from > 0 {
			*limit.to = new(limit.from.Milliseconds())
		}
	}
	return out
}

// lastSweep is what the last sweep came to; false before the first.
func (w *watched) lastSweep() (api.Swept, bool) {
	w.shown.Lock()
	defer w.shown.Unlock()
	return w.last, !w.last.At.IsZero()
}

// requests is the release service as the console knows it.
type requests struct {
	agent   *Agent
	service *release.Service
}

func (r requests) List(ctx context.Context, f console.RequestFilter) ([]locksteward.Request, error) {
	q := store.RequestQuery{
		States: f.States, Target: f.Target, Class: f.Class, Requester: f.Requester, Key: f.Key, Since: f.Since, Limit: f.Limit,
	}
	if f.After != nil {
		q.AfterAt, q.AfterID = f.After.At, f.After.ID
	}
	list, err := r.agent.store.QueryRequests(ctx, q)
	return list, stored(err)
}

func (r requests) Get(ctx context.Context, id string) (locksteward.Request, error) {
	req, err := r.service.Get(ctx, id)
	return req, stored(err)
}

func (r requests) Request(ctx context.Context, actor console.Actor, in console.ReleaseInput) (locksteward.Request, error) {
	return ask(ctx, r.agent, callRequest, wanted(actor, in, console.Word{}))
}

// about is a word on a request, for the replica that has its target.
func (r requests) about(ctx context.Context, in releaseAsked) (releaseAsked, error) {
	if r.agent.keeper == nil {
		return in, nil
	}
	of, err := r.Get(ctx, in.ID)
	in.Target = of.Evidence.Target
	return in, err
}

// say has the replica that has a request's target take a word on it.
func say[R any](ctx context.Context, r requests, c call[releaseAsked, R], in releaseAsked) (R, error) {
	in, err := r.about(ctx, in)
	if err != nil {
		var none R
		return none, err
	}
	return ask(ctx, r.agent, c, in)
}

func (r requests) request(ctx context.Context, actor console.Actor, in console.ReleaseInput) (locksteward.Request, error) {
	if err := r.ownDB(in); err != nil {
		return locksteward.Request{}, err
	}
	defer r.counted(ctx)
	req, err := r.service.Request(ctx, person(actor), input(in))
	return req, stored(err)
}

// ownDB refuses a lock of another database than the target's; a target that does
// not exist is for the service to refuse.
func (r requests) ownDB(in console.ReleaseInput) error {
	w, err := r.agent.watched(in.Target)
	if err != nil {
		return nil
	}
	return w.ownDB(in.DB)
}

func input(in console.ReleaseInput) release.RequestInput {
	return release.RequestInput{
		Target: in.Target, Key: in.Key, Reason: in.Reason, HolderAlive: in.HolderAlive, TakeOver: in.TakeOver, LockDelay: in.LockDelay,
	}
}

func (r requests) Undo(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	return say(ctx, r, callUndo, releaseAsked{Actor: actor, ID: id, Reason: reason})
}

func (r requests) undo(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Undo(ctx, person(actor), id, reason)
	return req, stored(err)
}

func (r requests) Lift(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	return say(ctx, r, callLift, releaseAsked{Actor: actor, ID: id, Reason: reason})
}

func (r requests) lift(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Lift(ctx, person(actor), id, reason)
	return req, stored(err)
}

func (r requests) DryRun(ctx context.Context, actor console.Actor, in console.ReleaseInput) (api.Preview, error) {
	out, err := read(ctx, r.agent, callDryRun, wanted(actor, in, console.Word{}))
	return out.V, err
}

func (r requests) dryRun(ctx context.Context, actor console.Actor, in console.ReleaseInput) (api.Preview, error) {
	if err := r.ownDB(in); err != nil {
		return api.Preview{}, err
	}
	req, preview, err := r.service.DryRun(ctx, person(actor), input(in))
	if err != nil {
		return api.Preview{}, stored(err)
	}
	return r.previewView(req, preview), nil
}

func (r requests) Preview(ctx context.Context, id string) (api.Preview, error) {
	in, err := r.about(ctx, releaseAsked{ID: id})
	if err != nil {
		return api.Preview{}, err
	}
	out, err := read(ctx, r.agent, callPreview, in)
	return out.V, err
}

func (r requests) preview(ctx context.Context, id string) (api.Preview, error) {
	req, err := r.service.Get(ctx, id)
	if err != nil {
		return api.Preview{}, stored(err)
	}
	preview, err := r.service.PreviewRequest(ctx, id)
	if err != nil {
		return api.Preview{}, stored(err)
	}
	return r.previewView(req, preview), nil
}

func (r requests) previewView(req locksteward.Request, p release.Preview) api.Preview {
	out := api.Preview{
		Request: r.view(req), Found: p.Found, Differences: append([]string{}, p.Differences...),
		Warnings: append([]string{}, r.service.Warnings(req)...), Keys: make([]string, 0, len(p.Keys)),
		Script: p.Script, Args: make([]string, 0, len(p.Args)),
	}
	if p.Refusal != nil {
		out.Refusal = p.Refusal.Error()
	}
	for _, key := range p.Keys {
		out.Keys = append(out.Keys, locksteward.DisplayKey(key))
	}
	for _, arg := range p.Args {
		out.Args = append(out.Args, locksteward.DisplayKey(arg))
	}
	return out
}

func (r requests) Approve(ctx context.Context, actor console.Actor, id string, w console.Word) (locksteward.Request, error) {
	return say(ctx, r, callApprove, releaseAsked{Actor: actor, ID: id, Word: w})
}

func (r requests) approve(ctx context.Context, actor console.Actor, id string, w console.Word) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Approve(ctx, person(actor), id, word(w))
	return req, stored(err)
}

func (r requests) Deny(ctx context.Context, actor console.Actor, id string, w console.Word) (locksteward.Request, error) {
	return say(ctx, r, callDeny, releaseAsked{Actor: actor, ID: id, Word: w})
}

func (r requests) deny(ctx context.Context, actor console.Actor, id string, w console.Word) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Deny(ctx, person(actor), id, word(w))
	return req, stored(err)
}

func word(w console.Word) release.Word {
	return release.Word{Reason: w.Reason, EvidenceHash: w.EvidenceHash, ConfirmNoIdentity: w.ConfirmNoIdentity, ConfirmHolderAlive: w.ConfirmHolderAlive}
}

func person(actor console.Actor) release.Actor {
	out := release.Actor{Name: actor.Name, Teams: actor.Teams}
	for _, role := range actor.Roles {
		out.Roles = append(out.Roles, release.Role(role))
	}
	return out
}

var (
	_ console.Locks    = (*Agent)(nil)
	_ console.Targets  = (*Agent)(nil)
	_ console.Reloader = (*Agent)(nil)
	_ console.Reports  = (*Agent)(nil)
)
