package backend

import (
	"context"
	"fmt"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/store"
)

// requests is the release service as the console knows it.
type requests struct {
	backend *Backend
	service *release.Service
}

func (r requests) List(ctx context.Context, f console.RequestFilter) ([]locksteward.Request, error) {
	q := store.RequestQuery{
		States: f.States, Target: f.Target, Class: f.Class, Requester: f.Requester, Key: f.Key, Since: f.Since, Limit: f.Limit,
	}
	if f.After != nil {
		q.AfterAt, q.AfterID = f.After.At, f.After.ID
	}
	list, err := r.backend.deps.Store.QueryRequests(ctx, q)
	return list, stored(err)
}

func (r requests) Get(ctx context.Context, id string) (locksteward.Request, error) {
	req, err := r.service.Get(ctx, id)
	return req, stored(err)
}

func (r requests) Request(ctx context.Context, actor console.Actor, in console.ReleaseInput) (locksteward.Request, error) {
	return forward(ctx, r.backend, callRequest, newReleaseInput(actor, in, console.Decision{}))
}

// about is a word on a request, for the replica that has its target.
func (r requests) about(ctx context.Context, in releaseInput) (releaseInput, error) {
	if r.backend.deps.Member == nil {
		return in, nil
	}
	of, err := r.Get(ctx, in.ID)
	in.Target = of.Evidence.Target
	return in, err
}

// say has the replica that has a request's target take a word on it.
func say[R any](ctx context.Context, r requests, c call[releaseInput, R], in releaseInput) (R, error) {
	in, err := r.about(ctx, in)
	if err != nil {
		var none R
		return none, err
	}
	return forward(ctx, r.backend, c, in)
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
	w, err := r.backend.deps.Targets.Get(in.Target)
	if err != nil {
		return nil
	}
	return w.OwnDB(in.DB)
}

func input(in console.ReleaseInput) release.RequestInput {
	return release.RequestInput{
		Target: in.Target, Key: in.Key, Reason: in.Reason, HolderAlive: in.HolderAlive, TakeOver: in.TakeOver, LockDelay: in.LockDelay,
	}
}

func (r requests) Undo(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	return say(ctx, r, callUndo, releaseInput{Actor: actor, ID: id, Reason: reason})
}

func (r requests) undo(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Undo(ctx, person(actor), id, reason)
	return req, stored(err)
}

func (r requests) Lift(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	return say(ctx, r, callLift, releaseInput{Actor: actor, ID: id, Reason: reason})
}

func (r requests) lift(ctx context.Context, actor console.Actor, id, reason string) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Lift(ctx, person(actor), id, reason)
	return req, stored(err)
}

func (r requests) DryRun(ctx context.Context, actor console.Actor, in console.ReleaseInput) (api.Preview, error) {
	out, err := forwardRead(ctx, r.backend, callDryRun, newReleaseInput(actor, in, console.Decision{}))
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
	in, err := r.about(ctx, releaseInput{ID: id})
	if err != nil {
		return api.Preview{}, err
	}
	out, err := forwardRead(ctx, r.backend, callPreview, in)
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

func (r requests) previewView(req locksteward.Request, p source.Preview) api.Preview {
	out := api.Preview{
		Request: r.view(req), Found: p.Found, Differences: append([]string{}, p.Differences...),
		Warnings: append([]string{}, r.service.Warnings(req)...), Keys: make([]string, 0, len(p.Keys)),
		Script: p.Script, Args: make([]string, 0, len(p.Args)),
	}
	switch {
	case p.Refusal != nil:
		out.Refusal = p.Refusal.Error()
	case p.MissingRights != "":
		out.Refusal = fmt.Sprintf("%s; grant what `locksteward acl --config FILE --target %s` prints", p.MissingRights, req.Evidence.Target)
	}
	if len(p.AlsoEnds) > 0 {
		names := make([]string, 0, len(p.AlsoEnds))
		for _, name := range p.AlsoEnds {
			names = append(names, locksteward.DisplayKey(name))
		}
		out.Warnings = append(out.Warnings, "it also ends other locks of the same session: "+strings.Join(names, ", "))
	}
	if r.renewed(req) {
		out.Warnings = append(out.Warnings, "The holder renews this lock: its next renewal moves the expiry, and this request then releases nothing. If the holder hangs, request it as “the holder is alive but stuck” (--holder-alive), which compares the owner.")
	}
	for _, key := range p.Keys {
		out.Keys = append(out.Keys, locksteward.DisplayKey(key))
	}
	for _, arg := range p.Args {
		out.Args = append(out.Args, locksteward.DisplayKey(arg))
	}
	return out
}

// renewed says whether a request compares the expiry of a hold that is renewed.
func (r requests) renewed(req locksteward.Request) bool {
	e := req.Evidence
	if e.HolderAlive || e.Of != "" {
		return false
	}
	w, err := r.backend.deps.Targets.Get(e.Target)
	if err != nil {
		return false
	}
	l, ok := w.Table().Get(e.DB, e.Key)
	return ok && l.TokenDigest == e.TokenDigest && l.Renewed()
}

func (r requests) Approve(ctx context.Context, actor console.Actor, id string, w console.Decision) (locksteward.Request, error) {
	return say(ctx, r, callApprove, releaseInput{Actor: actor, ID: id, Word: w})
}

func (r requests) approve(ctx context.Context, actor console.Actor, id string, w console.Decision) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Approve(ctx, person(actor), id, word(w))
	return req, stored(err)
}

func (r requests) Deny(ctx context.Context, actor console.Actor, id string, w console.Decision) (locksteward.Request, error) {
	return say(ctx, r, callDeny, releaseInput{Actor: actor, ID: id, Word: w})
}

func (r requests) deny(ctx context.Context, actor console.Actor, id string, w console.Decision) (locksteward.Request, error) {
	defer r.counted(ctx)
	req, err := r.service.Deny(ctx, person(actor), id, word(w))
	return req, stored(err)
}

func word(w console.Decision) release.Decision {
	return release.Decision{Reason: w.Reason, EvidenceHash: w.EvidenceHash, ConfirmNoIdentity: w.ConfirmNoIdentity, ConfirmHolderAlive: w.ConfirmHolderAlive}
}

func person(actor console.Actor) release.Actor {
	out := release.Actor{Name: actor.Name, Teams: actor.Teams}
	for _, role := range actor.Roles {
		out.Roles = append(out.Roles, release.Role(role))
	}
	return out
}
