package agent

import (
	"context"
	"iter"
	"slices"

	"github.com/locksteward/locksteward"
)

// proposeAll asks once for the release of each lock that a rule of its class
// calls dead. What could not be asked, since the store was full for instance, is
// asked again with the next sweep. The caller holds w.mu.
func (w *watched) proposeAll(ctx context.Context, findings iter.Seq[locksteward.Finding]) {
	if w.behind > 0 {
		return
	}
	firing := map[string]bool{}
	for f := range findings {
		if id, ok := w.question(f); ok {
			firing[id] = w.proposed[id] || w.ask(ctx, f)
		}
	}
	w.proposed = firing
}

// question names what is asked about a finding that fires on a known lock, if its
// class calls that dead: another hold under the same key is another question. A reload
// may change the class.
func (w *watched) question(f locksteward.Finding) (id string, ok bool) {
	if f.Status != locksteward.StatusFiring || f.Key == "" || !slices.Contains(w.agent.classNamed(f.Class).DeadWhen, f.Rule) {
		return "", false
	}
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	return f.Fingerprint() + l.TokenDigest + l.History.FirstSeen.String(), ok
}

// ask proposes the release of one lock. After a restart or failover nobody is
// called dead for one longest lease.
func (w *watched) ask(ctx context.Context, f locksteward.Finding) bool {
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	if !ok {
		return false
	}
	_, _, paused := w.agent.engine.Paused(w.target.Name, l.At)
	return !paused && w.agent.propose(ctx, w, f)
}
