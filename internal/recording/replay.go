package recording

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/rules"
)

// Replayed is what the rules made of a recording.
type Replayed struct {
	Looks int
	// Locks is how many lock keys there were, each counted once.
	Locks int
	// From and To are the first and the last look, server time.
	From, To time.Time
	// Transitions are what people would have been notified of, and what was only
	// reported, in the order of the looks.
	Transitions []locksteward.Transition
	// Findings are those that pend or fire at the end, most severe first.
	Findings []locksteward.Finding
	// Dead are the locks of the end that their class calls dead.
	Dead []Dead
}

// Dead is a lock for which the agent would propose a release.
type Dead struct {
	Lock locksteward.Lock
	// Because are the elements of dead_when that fire or hold.
	Because []string
}

// Replay judges the looks in their order. Where classes is not nil the locks are
// classified anew by it; else they keep the class that they were recorded with.
// redlock says which targets of the looks are the masters of one Redlock. A look
// that does not say when it began by the agent's clock has the server's.
func Replay(looks iter.Seq2[Look, error], cfg rules.Config, classes *class.Set, redlock []rules.Redlock) (Replayed, error) {
	engine, err := rules.New(cfg, classes, lockstore.Facts)
	if err != nil {
		return Replayed{}, err
	}
	engine.SetRedlocks(redlock)
	var out Replayed
	present := map[lockID]locksteward.Lock{}
	ever := map[lockID]bool{}
	for look, err := range looks {
		if err != nil {
			return Replayed{}, err
		}
		s := &look.Sweep
		if s.Started.IsZero() {
			s.Started = s.At.Add(-s.Duration)
		}
		classify(s, classes)
		if out.Looks++; out.Looks == 1 {
			out.From = s.At
		}
		out.To = s.At
		if look.Direct {
			out.Transitions = append(out.Transitions, engine.EvaluateDirect(s.Update())...)
		} else {
			out.Transitions = append(out.Transitions, engine.Evaluate(*s)...)
		}
		remember(present, ever, look)
	}
	out.Locks = len(ever)
	out.Findings = engine.Findings()
	out.Dead = dead(engine, classes, present)
	return out, nil
}

// lockID tells locks apart.
type lockID struct {
	target string
	db     int
	key    string
}

func idOf(l locksteward.Lock) lockID { return lockID{l.Target, l.DB, l.Key} }

// remember keeps the locks that are there after the look.
func remember(present map[lockID]locksteward.Lock, ever map[lockID]bool, look Look) {
	if !look.Direct && look.Sweep.Complete() {
		for id := range present {
			if id.target == look.Sweep.Target {
				delete(present, id)
			}
		}
	}
	for _, e := range look.Sweep.Endings {
		delete(present, idOf(e.Lock))
	}
	for _, l := range look.Sweep.Locks {
		present[idOf(l)], ever[idOf(l)] = l, true
	}
}

// classify gives everything in a sweep the class that the configuration gives.
func classify(s *locksteward.Sweep, classes *class.Set) {
	if classes == nil {
		return
	}
	of := func(key string) (string, bool) {
		m := classes.Classify(key)
		return cmp.Or(m.Class, class.Default), m.Configured
	}
	*s = s.Collect()
	for i := range s.Locks {
		l := &s.Locks[i]
		l.Class, l.Configured = of(l.Key)
	}
	for i := range s.Endings {
		l := &s.Endings[i].Lock
		l.Class, l.Configured = of(l.Key)
	}
	for i := range s.Losses {
		s.Losses[i].Class, _ = of(s.Losses[i].Key)
	}
	for i := range s.Waiters {
		s.Waiters[i].Class, _ = of(s.Waiters[i].Key)
	}
}

// dead lists the locks that a rule or expression of their class's dead_when
// calls dead, as the agent would.
func dead(engine *rules.Engine, classes *class.Set, present map[lockID]locksteward.Lock) []Dead {
	var out []Dead
	if classes == nil {
		return nil
	}
	for _, l := range present {
		c, ok := classes.Get(l.Class)
		if !ok || len(c.DeadWhen) == 0 {
			continue
		}
		var because []string
		for _, rule := range engine.Firing(l) {
			if slices.Contains(c.DeadWhen, rule) {
				because = append(because, rule)
			}
		}
		if because = append(because, engine.DeadWhen(l)...); len(because) > 0 {
			out = append(out, Dead{Lock: l, Because: because})
		}
	}
	slices.SortFunc(out, func(a, b Dead) int {
		return cmp.Or(strings.Compare(a.Lock.Target, b.Lock.Target), cmp.Compare(a.Lock.DB, b.Lock.DB), strings.Compare(a.Lock.Key, b.Lock.Key))
	})
	return out
}
