package targets

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/exporter"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
)

const (
	// announcedAtOnce bounds how many transitions of a storm are copied at once.
	announcedAtOnce = 500
	// watchSetUp is how long the first sweep waits for the watch: what is written
	// after the watch stands and before the sweep ends is noticed by one of the two.
	watchSetUp = 2 * time.Second
	// showEvery is how often metrics follow what the watch tells.
	showEvery = time.Second
)

// watch takes in changes between sweeps until ctx ends. It returns when the first
// sweep may begin.
func (w *Watched) watch(ctx context.Context) {
	w.background(func() {
		if err := w.scanner.Watch(ctx, w.pushed); err != nil {
			w.log.Error("changes are noticed by sweeps alone", zap.Error(err))
		}
	})
	w.background(func() { w.showWatch(ctx) })
	w.background(func() { w.tellDelays(ctx) })
	w.background(func() { w.tellProgress(ctx) })
	patience, cancel := context.WithTimeout(ctx, watchSetUp)
	defer cancel()
	w.scanner.AwaitWatch(patience)
}

// pushed takes in what the watch saw of some locks.
func (w *Watched) pushed(ctx context.Context, update locksteward.Update) {
	w.take(ctx, update, true)
}

// sighted takes in what the sweep under way saw of some locks.
func (w *Watched) sighted(ctx context.Context, update locksteward.Update) {
	w.take(ctx, update, false)
	w.recheckLater(ctx)
}

// take judges some locks that were read, and reports what the rules find. prompt says that
// endings are known as they happened. What it costs depends on these locks, not on how many
// locks or findings there are.
func (w *Watched) take(ctx context.Context, update locksteward.Update, prompt bool) {
	defer w.deps.Touch()
	defer w.turn.take()()
	// A recheck may have seen more meanwhile: the last word counts.
	locks := update.Locks[:0]
	for _, l := range update.Locks {
		if now, ok := w.scanner.Table().Get(l.DB, l.Key); ok {
			locks = append(locks, now)
		}
	}
	update.Locks = locks
	transitions := w.deps.Engine.EvaluateWatched(update)
	w.deps.Exporter.ObserveWatch(update)
	w.holds.AddUpdate(update)
	w.found(transitions)
	w.over(update.Endings, prompt)
	w.tellChanges(ctx, transitions)
	for l := range locksteward.LocksOf(update.Locks) {
		w.lookWhenDue(l)
	}
	if len(update.Waiters) > 0 {
		w.recheckLater(ctx) // a wait/cycle counts when it is seen twice
	}
}

// lookWhenDue has a lock read again when time alone may change the verdict on it. The
// caller has the turn.
func (w *Watched) lookWhenDue(l *locksteward.Lock) {
	w.scanner.Touch(l.Key, w.deps.Engine.NextLook(l))
}

// tellChanges is publish for a few transitions. The metrics follow. The caller
// has the turn.
func (w *Watched) tellChanges(ctx context.Context, transitions []locksteward.Transition) {
	if len(transitions) == 0 {
		return
	}
	w.tell(ctx, transitions)
	w.unshown = true
	if w.backlog.size() > 0 {
		return // a request could not be written either: the next sweep asks
	}
	for f := range findingsOf(transitions) {
		if q, ok := w.question(f); ok {
			w.proposals.add(q)
		}
	}
}

// announce logs transitions and returns the events that receivers are notified of. The
// caller has the turn.
func (w *Watched) announce(transitions []locksteward.Transition) []locksteward.FindingEvent {
	w.deps.Executions.explain(transitions, time.Now()) // each part of a sweep is made anew
	w.deps.Resolved.add(transitions)
	var out []locksteward.FindingEvent
	var notify []locksteward.Transition
	for part := range slices.Chunk(transitions, announcedAtOnce) {
		notify = notify[:0]
		for _, t := range part {
			f := t.Finding
			w.log.Info("finding", zap.String("status", string(f.Status)), zap.String("rule", f.Rule),
				zap.Stringer("severity", f.Severity), zap.String("key", locksteward.DisplayKey(f.Key)),
				zap.String("class", f.Class), zap.String("fingerprint", f.Fingerprint()))
			if rules.Notifies(f) {
				notify = append(notify, t)
			}
		}
		if events := w.deps.Alerts.Events(notify, w.inFirstSweep, w.leaseEnds); len(events) > 0 {
			if out == nil {
				out = make([]locksteward.FindingEvent, 0, len(transitions))
			}
			out = append(out, events...)
		}
	}
	return out
}

// leaseEnds is when the lease of a finding's lock ends unless it is renewed; zero if
// that is not known.
func (w *Watched) leaseEnds(f locksteward.Finding) time.Time {
	l, ok := w.scanner.Table().Get(f.DB, f.Key)
	if f.Key == "" || !ok || l.TTL <= 0 { // [locksteward.NoExpiry] among them
		return time.Time{}
	}
	return l.At.Add(l.TTL)
}

// showWatch has the metrics follow what was judged until ctx ends.
func (w *Watched) showWatch(ctx context.Context) {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	loop, remove := w.deps.Liveness.Add("verdicts on target "+w.target.Name, &w.calls)
	defer remove()
	for {
		loop.Progress()
		w.coverHolds(watchOf(w.scanner.WatchState()))
		endTurn := w.turn.take()
		if w.unshown {
			w.unshown = false
			w.deps.Exporter.SetFindings(w.target.Name, w.deps.Engine.FindingsOn(w.target.Name).Outlines())
		}
		w.deps.Exporter.SetUnsaved(w.target.Name, w.backlog.size())
		w.showPace()
		endTurn()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func watchOf(state source.WatchState) exporter.Watch {
	out := exporter.Watch{
		Mode: string(state.Mode), Classes: map[string]bool{}, Blind: state.Blind, Missed: state.Missed, Delay: state.Delay,
	}
	for _, c := range state.Classes {
		out.Classes[c.Class] = c.Coverage == source.CoverageFull
	}
	return out
}
