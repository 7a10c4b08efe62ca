package agent

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// proposeDead asks once for the release of each lock for which an expression of
// its class's dead_when holds, of those that were just looked at. The caller
// holds w.mu.
func (w *watched) proposeDead(ctx context.Context, locks []locksteward.Lock) {
	asked := map[string]bool{}
	for _, l := range locks {
		for _, because := range w.agent.engine.DeadWhen(l) {
			// Another hold under the same key is another question.
			id := because + "\x00" + l.Key + "\x00" + l.TokenDigest + l.History.FirstSeen.String()
			asked[id] = w.dead[id] || w.agent.proposeRelease(ctx, w, l.Key)
		}
	}
	w.dead = asked
}

// proposeRelease reads the lock again and asks for its release if a rule or an
// expression of its class calls it dead at that second look too. It returns
// false if asking failed and is worth another try.
func (a *Agent) proposeRelease(ctx context.Context, w *watched, key string) bool {
	l, err := w.scanner.Table().Refresh(ctx, key)
	if err != nil {
		if !errors.Is(err, locksteward.ErrNotFound) {
			w.log.Warn("a dead lock could not be read for a proposal", zap.Error(err))
		}
		return false
	}
	r, err := a.releases.Propose(ctx, l, a.firing(l))
	if err != nil {
		w.log.Error("a release could not be proposed", zap.String("key", locksteward.DisplayKey(key)), zap.Error(err))
		return false
	}
	if r != nil {
		w.log.Info("release proposed", zap.String("request_id", r.ID), zap.String("key", locksteward.DisplayKey(key)))
		a.countRequests(ctx)
	}
	return true
}
