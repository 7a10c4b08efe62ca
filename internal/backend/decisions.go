package backend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
	"github.com/locksteward/locksteward/console"
	"github.com/locksteward/locksteward/release"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
)

// ApprovalStatus says what still is to be decided on a request.
func (r requests) ApprovalStatus(req locksteward.Request) console.ApprovalStatus {
	s := r.service.ApprovalStatus(req)
	return console.ApprovalStatus{ApprovalsNeeded: s.Approvals, DenialsNeeded: s.Denials, Warnings: s.Warnings}
}

// counted brings the metrics up to date after a person's word.
func (r requests) counted(ctx context.Context) {
	r.backend.deps.CountRequests(context.WithoutCancel(ctx))
}

// view is a request as the API shows it.
func (r requests) view(req locksteward.Request) api.Request {
	out, s := api.NewRequest(req), r.service.ApprovalStatus(req)
	if s.Approvals > 0 {
		out.ApprovalsNeeded, out.DenialsNeeded = &s.Approvals, &s.Denials
	}
	out.Warnings = append(out.Warnings, s.Warnings...)
	return out
}

func (r requests) BreakGlass(ctx context.Context, actor console.Actor, in console.ReleaseInput, w console.Decision) (locksteward.Request, error) {
	return forward(ctx, r.backend, callBreakGlass, newReleaseInput(actor, in, w))
}

func (r requests) breakGlass(ctx context.Context, actor console.Actor, in console.ReleaseInput, w console.Decision) (locksteward.Request, error) {
	if err := r.ownDB(in); err != nil {
		return locksteward.Request{}, err
	}
	defer r.counted(ctx)
	req, err := r.service.BreakGlass(ctx, person(actor), input(in), word(w))
	return req, stored(err)
}

func (r requests) Bundle(ctx context.Context, id string) (console.Bundle, error) {
	b, err := r.service.GetBundle(ctx, id)
	return bundle(b), stored(err)
}

func (r requests) RequestBundle(ctx context.Context, actor console.Actor, in console.BundleInput) (console.Bundle, error) {
	return forward(ctx, r.backend, callRequestBundle, bundleInput{Actor: actor, In: in, Named: in.Keys != nil})
}

func (r requests) requestBundle(ctx context.Context, actor console.Actor, in console.BundleInput) (console.Bundle, error) {
	keys, more := in.Keys, []api.LeftOut(nil)
	if keys == nil {
		var err error
		if keys, more, err = r.backend.deadOn(in.Target, in.Host); err != nil {
			return console.Bundle{}, err
		}
	}
	defer r.counted(ctx)
	b, err := r.service.RequestBundle(ctx, person(actor), release.BundleInput{Target: in.Target, Host: in.Host, Keys: keys, Reason: in.Reason})
	if err != nil {
		return console.Bundle{}, stored(err)
	}
	out := bundle(b)
	out.LeftOut = append(out.LeftOut, more...)
	return out, nil
}

// sayAll has the replica that has a bundle's target take a word on it.
func (r requests) sayAll(ctx context.Context, c call[releaseInput, console.Bundle], in releaseInput) (console.Bundle, error) {
	if r.backend.deps.Member != nil {
		b, err := r.Bundle(ctx, in.ID)
		if err != nil {
			return console.Bundle{}, err
		}
		if len(b.Requests) > 0 {
			in.Target = b.Requests[0].Evidence.Target
		}
	}
	return forward(ctx, r.backend, c, in)
}

func (r requests) ApproveBundle(ctx context.Context, actor console.Actor, id string, w console.Decision) (console.Bundle, error) {
	return r.sayAll(ctx, callApproveBundle, releaseInput{Actor: actor, ID: id, Word: w})
}

func (r requests) approveBundle(ctx context.Context, actor console.Actor, id string, w console.Decision) (console.Bundle, error) {
	defer r.counted(ctx)
	b, err := r.service.ApproveBundle(ctx, person(actor), id, word(w))
	return bundle(b), stored(err)
}

func (r requests) DenyBundle(ctx context.Context, actor console.Actor, id string, w console.Decision) (console.Bundle, error) {
	return r.sayAll(ctx, callDenyBundle, releaseInput{Actor: actor, ID: id, Word: w})
}

func (r requests) denyBundle(ctx context.Context, actor console.Actor, id string, w console.Decision) (console.Bundle, error) {
	defer r.counted(ctx)
	b, err := r.service.DenyBundle(ctx, person(actor), id, word(w))
	return bundle(b), stored(err)
}

func bundle(b release.Bundle) console.Bundle {
	out := console.Bundle{ID: b.ID, Hash: b.Hash, Requests: b.Requests}
	for key, why := range b.LeftOut {
		out.LeftOut = append(out.LeftOut, api.NewLeftOut(key, why))
	}
	slices.SortFunc(out.LeftOut, func(x, y api.LeftOut) int {
		return cmp.Or(strings.Compare(x.Key.Key, y.Key.Key), strings.Compare(x.KeyB64, y.KeyB64))
	})
	return out
}

// deadOn picks the locks whose holder is on a host and dead: holder/dead fires on
// them, or the host is lost (host/lost) and they are stale. The longest held come
// first; what is more than a bundle may have is left out, with why.
func (b *Backend) deadOn(target, host string) (keys []string, more []api.LeftOut, err error) {
	w, err := b.deps.Targets.Get(target)
	if err != nil {
		return nil, nil, err
	}
	if host == "" {
		return nil, nil, fmt.Errorf("%w: host is missing: write the host that is dead, as its locks' holders name it", locksteward.ErrInvalid)
	}
	lost := false
	for _, f := range b.deps.Engine.FindingsFor(target, w.Target().DB, "") {
		lost = lost || f.Rule == rules.HostLost && f.Subject == host && f.Status == locksteward.StatusFiring
	}
	page := w.Table().Page(scanner.Query{Holder: host, Order: scanner.ByAge, Limit: max(1, w.Table().Len())})
	held := 0
	for _, l := range page.Locks {
		if l.Holder.Host != host {
			continue
		}
		held++
		if !b.deadHolder(l) && (!lost || !rules.Stale(l)) {
			continue
		}
		if len(keys) == release.MaxBundle {
			more = append(more, api.NewLeftOut(l.Key, fmt.Errorf("a bundle has at most %d locks: ask for another one once this is decided", release.MaxBundle)))
			continue
		}
		keys = append(keys, l.Key)
	}
	switch {
	case held == 0:
		return nil, nil, fmt.Errorf("%w: no lock of target %q is held on host %q; see the holders in locksteward locks list", locksteward.ErrNotFound, target, host)
	case len(keys) == 0:
		return nil, nil, fmt.Errorf("%w: none of the %d locks held on host %q looks dead (neither holder/dead nor host/lost fires: locksteward explain KEY says why); name the locks by their keys if you know better",
			locksteward.ErrRefused, held, host)
	}
	return keys, more, nil
}

// deadHolder says that holder/dead fires on a lock.
func (b *Backend) deadHolder(l locksteward.Lock) bool {
	return slices.ContainsFunc(b.deps.Engine.FindingsFor(l.Target, l.DB, l.Key), func(f locksteward.Finding) bool {
		return f.Rule == rules.HolderDead && f.Status == locksteward.StatusFiring
	})
}

// releasePause pauses and resumes releases, as the console asks for it.
type releasePause struct{ service *release.Service }

func (p releasePause) ReleasePause() api.ReleasePause {
	now := p.service.PauseStatus()
	all := pauseOfScope(now.All)
	all.Paused, all.Unknown = all.Paused || now.Configured || now.Unknown, now.Unknown
	if now.Configured {
		all.Configured = "release.paused"
	}
	automatic := pauseOfScope(now.Automatic)
	automatic.Paused, automatic.Configured = automatic.Paused || now.Window != "", now.Window
	return api.ReleasePause{All: all, Automatic: automatic}
}

// pauseOfScope is an admin's pause as the API shows it; nil for none.
func pauseOfScope(p *release.Pause) api.PauseOfScope {
	if p == nil {
		return api.PauseOfScope{}
	}
	return api.PauseOfScope{Paused: true, By: p.By, Since: api.Time(p.Since), Until: api.Time(p.Until), Reason: p.Reason}
}

func (p releasePause) PauseReleases(ctx context.Context, actor console.Actor, scope string, until time.Time, reason string) error {
	return stored(p.service.Pause(ctx, person(actor), release.PauseScope(scope), until, reason))
}

func (p releasePause) ResumeReleases(ctx context.Context, actor console.Actor, scope, reason string) error {
	return stored(p.service.Resume(ctx, person(actor), release.PauseScope(scope), reason))
}
