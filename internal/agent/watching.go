package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/alert"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/store"
)

const (
	// watchSetUp is how long the first sweep waits for the watch: what is written
	// after the watch stands and before the sweep ends is told by one of the two.
	watchSetUp = 2 * time.Second
	// showEvery is how often metrics follow what the watch tells.
	showEvery = time.Second
)

// watch takes in changes between sweeps until ctx ends. It returns when the first
// sweep may begin.
func (w *watched) watch(ctx context.Context) {
	w.background(func() {
		if err := w.scanner.Watch(ctx, w.pushed); err != nil {
			w.log.Error("changes are told by sweeps alone", zap.Error(err))
		}
	})
	w.background(func() { w.showWatch(ctx) })
	patience, cancel := context.WithTimeout(ctx, watchSetUp)
	defer cancel()
	w.scanner.AwaitWatch(patience)
}

// pushed takes in what the watch saw of some locks. What it costs depends on
// them, not on how many locks or findings there are.
func (w *watched) pushed(ctx context.Context, sweep locksteward.Sweep) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A recheck may have seen more meanwhile: the last word counts.
	locks := sweep.Locks[:0]
	for _, l := range sweep.Locks {
		if now, ok := w.scanner.Table().Get(l.DB, l.Key); ok {
			locks = append(locks, now)
		}
	}
	sweep.Locks = locks
	transitions := w.agent.engine.EvaluateWatched(sweep)
	w.agent.exporter.ObserveWatch(sweep)
	w.holds.Take(sweep)
	w.remember(sweep, transitions, true)
	w.tellChanges(ctx, transitions)
	w.agent.console.Touch()
	w.lookAgain(sweep)
	if len(sweep.Waiters) > 0 {
		w.recheckLater(ctx) // a wait/cycle counts when it is seen twice
	}
}

// lookAgain has locks read again when time alone may change the verdict on them.
// The caller holds w.mu.
func (w *watched) lookAgain(sweep locksteward.Sweep) {
	for l := range sweep.AllLocks() {
		w.scanner.Touch(l.Key, w.agent.engine.NextLook(*l))
	}
}

// tellChanges is publish for a few transitions. The metrics follow. The caller
// holds w.mu.
func (w *watched) tellChanges(ctx context.Context, transitions []locksteward.Transition) {
	if len(transitions) == 0 {
		return
	}
	changed := make([]locksteward.Finding, len(transitions))
	for i, t := range transitions {
		changed[i] = t.Finding
	}
	w.keep(ctx, w.announce(transitions), func(ctx context.Context, told ...store.Message) error {
		return w.agent.store.ChangeFindings(ctx, w.target.Name, changed, told...)
	})
	w.unshown = true
	if w.behind > 0 {
		return // a request could not be written either: the next sweep asks
	}
	for _, f := range changed {
		if id, ok := w.question(f); ok && !w.proposed[id] {
			if w.proposed == nil {
				w.proposed = map[string]bool{}
			}
			w.proposed[id] = w.ask(ctx, f)
		}
	}
}

// announce logs transitions and returns the messages about those that people are
// to hear of.
func (w *watched) announce(transitions []locksteward.Transition) []alert.Message {
	w.agent.ended.take(transitions)
	var told []locksteward.Transition
	for _, t := range transitions {
		f := t.Finding
		w.log.Info("finding", zap.String("status", string(f.Status)), zap.String("rule", f.Rule),
			zap.Stringer("severity", f.Severity), zap.String("key", locksteward.DisplayKey(f.Key)),
			zap.String("class", f.Class), zap.String("fingerprint", f.Fingerprint()))
		if rules.Notifies(f) {
			told = append(told, t)
		}
	}
	return w.agent.alerts.Findings(told)
}

// showWatch has the metrics follow until ctx ends.
func (w *watched) showWatch(ctx context.Context) {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for {
		watch := watchOf(w.scanner.WatchState())
		w.agent.exporter.SetWatch(w.target.Name, watch)
		w.coverHolds(watch)
		w.mu.Lock()
		if w.unshown {
			w.unshown = false
			w.agent.exporter.SetFindings(w.target.Name, w.agent.findingsOf(w.target.Name))
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func watchOf(state scanner.WatchState) exporter.Watch {
	out := exporter.Watch{
		Mode: string(state.Mode), Classes: map[string]bool{}, Blind: state.Blind, Missed: state.Missed,
	}
	for _, c := range state.Classes {
		out.Classes[c.Class] = c.Coverage == scanner.CoverageFull
	}
	return out
}
