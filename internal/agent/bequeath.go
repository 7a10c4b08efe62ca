package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/store"
)

// A replica that is cut off from the database tells people from memory. If it loses
// its target then, the replica that takes over never hears of a finding that was told
// so and is over by its first look: nobody would tell the end of it. So the old one,
// as soon as it can, says to the new one what it told.

// bequest is what receivers were told of a target and the store does not know.
type bequest struct {
	Target string
	// Told are changes to firing, each with the receivers that were told or may have
	// been.
	Told []locksteward.FindingEvent
}

var callInherit = call[bequest, bool]{"inherit", func(in bequest) string { return in.Target }, func(a *Agent, ctx context.Context, in bequest) (bool, error) {
	w, err := a.watched(in.Target)
	if err != nil {
		return false, err
	}
	return w.inherit(ctx, in.Told)
}}

// bequests are those that are on their way.
type bequests struct {
	mu    sync.Mutex
	list  []bequest
	fresh chan struct{} // of size 1
}

// add takes what a replica that lost a target had told of it, if it is anything.
func (b *bequests) add(one bequest) {
	if len(one.Told) == 0 {
		return
	}
	b.mu.Lock()
	b.list = append(b.list, one)
	b.mu.Unlock()
	nudge(b.fresh)
}

func (b *bequests) first() (bequest, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return bequest{}, false
	}
	return b.list[0], true
}

// next puts the first one behind the others, or forgets it if it is done.
func (b *bequests) next(done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.list[0]
	b.list = b.list[1:]
	if !done {
		b.list = append(b.list, one)
	}
}

// bequeath says to other replicas what was told of targets that they have now, until
// ctx ends.
func (a *Agent) bequeath(ctx context.Context) {
	for {
		one, ok := a.bequests.first()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-a.bequests.fresh:
			}
			continue
		}
		done, err := true, error(nil)
		if a.configured(one.Target) {
			done, err = ask(ctx, a, callInherit, one)
		}
		a.bequests.next(done)
		if done {
			continue
		}
		a.log.Debug("what was told of a target is not handed over yet", zap.String("target", one.Target), zap.Error(err))
		select {
		case <-ctx.Done():
			a.log.Warn("people were told of findings whose end nobody will tell: the store and the other replicas were away",
				zap.String("target", one.Target), zap.Int("findings", len(one.Told)))
			return
		case <-time.After(fleetEvery):
		}
	}
}

// firesTold are the changes of which people were told from memory that something
// fires, and not that it ended. The changes are in their order; from memory nothing of
// them is told any more.
func (a *Agent) firesTold(changes []locksteward.FindingEvent) []locksteward.FindingEvent {
	rest, _ := a.alerts.Unsaved(changes)
	by := map[string]int{}
	var out []locksteward.FindingEvent
	for _, c := range rest {
		var told []locksteward.Recipient
		for _, to := range c.To {
			if to.Direct {
				told = append(told, to)
			}
		}
		if len(told) == 0 {
			continue
		}
		print := c.Finding.Fingerprint()
		if i, ok := by[print]; ok {
			out[i].To = nil // what was told last counts
		}
		if c.To = told; c.Finding.Status != locksteward.StatusFiring {
			delete(by, print)
			continue
		}
		by[print] = len(out)
		out = append(out, c)
	}
	kept := out[:0]
	for _, c := range out {
		if len(c.To) > 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// inherit takes over what another replica told of this target while nobody knew, and
// tells the end of what is over. It says false until that can be judged: after a
// complete sweep, and not while a finding waits for its time.
func (w *watched) inherit(ctx context.Context, told []locksteward.FindingEvent) (bool, error) {
	if swept, ok := w.lastSweep(); !ok || !swept.Complete {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	here := map[string]locksteward.Status{}
	for f := range w.agent.engine.FindingsOn(w.target.Name).All() {
		here[f.Fingerprint()] = f.Status
	}
	var over []locksteward.Transition
	for _, c := range told {
		switch status, ok := here[c.Finding.Fingerprint()]; {
		case ok && status == locksteward.StatusPending:
			return false, nil
		case !ok:
			over = append(over, w.agent.engine.Ended(c.Finding, time.Now()))
		}
	}
	if w.behind > 0 {
		return false, nil // the store does not work
	}
	changes := append(told, w.announce(over)...)
	defer w.calls.begin()()
	if err := w.agent.store.UpdateFindings(ctx, w.target.Name, findingsOf(nil), store.Outgoing{Events: changes}); err != nil {
		if errors.Is(err, store.ErrLeaseLost) {
			return false, err
		}
		w.log.Warn("what another replica told is not taken over yet", zap.Error(err))
		return false, nil
	}
	w.log.Info("another replica had told of findings from memory", zap.Int("findings", len(told)), zap.Int("over", len(over)))
	return true, nil
}
