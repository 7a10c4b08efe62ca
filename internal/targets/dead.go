package targets

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/release"
)

// proposeDead has the release asked for of each lock for which an expression of its
// class's dead_when holds, of those that were just looked at. The caller has the turn.
func (w *Watched) proposeDead(sweep locksteward.Sweep) {
	if w.backlog.size() > 0 {
		return // the store takes no request: the next look asks
	}
	var all []question
	for l := range sweep.AllLocks() {
		for _, because := range w.deps.Engine.DeadWhen(*l) {
			all = append(all, question{byExpression, because + "\x00" + l.Key + "\x00" + l.TokenDigest + l.History.FirstSeen.String(), l.Key})
		}
	}
	w.proposals.replace(byExpression, all)
}

// proposeRelease reads the lock again and asks for its release if a rule or an
// expression of its class calls it dead at that second look too. It returns
// false if asking failed and is worth another try.
func (w *Watched) proposeRelease(ctx context.Context, key string) bool {
	l, err := w.scanner.Table().Refresh(ctx, key)
	if err != nil {
		if !errors.Is(err, locksteward.ErrNotFound) {
			w.log.Warn("a dead lock could not be read for a proposal", zap.Error(err))
		}
		return false
	}
	r, err := w.deps.Releases.Propose(ctx, l, firing(w.deps.Engine, l))
	if err != nil {
		w.log.Error("a release could not be proposed", zap.String("key", locksteward.DisplayKey(key)), zap.Error(err))
		return false
	}
	if r != nil {
		w.log.Info("release proposed", zap.String("request_id", r.ID), zap.String("key", locksteward.DisplayKey(key)))
		w.deps.CountRequests(ctx)
	}
	return true
}

// releaseDead tells the release service what a complete sweep says of locks of
// classes that have a dead_when: it counts how long each looks dead, and carries
// out what needs no person.
func (w *Watched) releaseDead(ctx context.Context, sweep locksteward.Sweep) {
	if !sweep.Complete() {
		return
	}
	classes := w.deps.Classes()
	// After a restart or failover nobody is called dead for one longest lease.
	_, _, paused := w.deps.Engine.Paused(w.target.Name, sweep.At)
	var dead []release.Dead
	for l := range sweep.AllLocks() {
		if c, ok := classes.Get(l.Class); paused || !ok || len(c.DeadWhen) == 0 || !c.Releasable() {
			continue
		}
		if fires := firing(w.deps.Engine, *l); len(fires) > 0 {
			dead = append(dead, release.Dead{Lock: *l, Firing: fires, Proof: proofOf(w.deps.Engine, *l)})
		}
	}
	// An act must not hold up the next look.
	w.background(func() {
		if _, err := w.deps.Releases.Swept(ctx, w.target.Name, dead); err != nil && ctx.Err() == nil {
			w.log.Error("dead locks could not be taken care of", zap.Error(err))
		}
	})
}
