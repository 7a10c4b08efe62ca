package rules

import (
	"fmt"

	"github.com/locksteward/locksteward"
)

// Explain says of each rule, in the order of their names, whether it fires on
// the lock and why or why not. It changes nothing. Findings have the status of
// the engine's table, or, where the lock was not evaluated before, the status
// that a first look would give. Only the losses already on record are known.
func (e *Engine) Explain(l locksteward.Lock) []Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := explanation{e: e, lock: &l, plan: e.policy.plan(l.Class)}
	var out []Verdict
	for _, r := range e.policy.all {
		out = append(out, x.explain(r)...)
	}
	return append(out, x.deadWhen()...)
}

// explanation is one lock under one policy.
type explanation struct {
	e    *Engine
	lock *locksteward.Lock
	plan *plan
}

func (x explanation) explain(r Rule) []Verdict {
	d, l, c := r.Doc(), x.lock, x.plan.class
	if l.Kind == locksteward.KindCandidate {
		return []Verdict{{Rule: d.Name, Result: NotApplicable, Reason: "the key only looks like a lock, by its name (a candidate): no rule judges it"}}
	}
	set := x.e.policy.setting(d.Name, c.Name)
	if set.off {
		return []Verdict{{Rule: d.Name, Result: Off, Reason: fmt.Sprintf("switched off by rules[%d]", set.entry)}}
	}
	in := x.e.situated(l.Target, Input{Now: l.At, Class: c, explain: true})
	onKey := subject{target: l.Target, db: l.DB, key: l.Key}
	switch d.Scope {
	case ScopeHost, ScopeTarget:
		return []Verdict{x.beyond(r, in)}
	case ScopeLoss:
		return x.losses(d.Name, onKey)
	case ScopeClass:
		in.Group = &Group{}
		in.Group.add(l)
		return []Verdict{x.verdict(r.Evaluate(in), d.Name, set, subject{target: l.Target, db: l.DB, class: c.Name})}
	case ScopeWaiters:
		in.Lock, in.Waiters = l, x.e.waits.waitersOf(onKey)
		return []Verdict{x.verdict(r.Evaluate(in), d.Name, set, onKey)}
	case ScopeCycle:
		return x.cycles(r, in, set, onKey)
	case ScopeOrder:
		return x.orders(r, in, set)
	case ScopeActivity:
		in.Activity = x.e.activities[l.Target].of(c.Name, l.At)
		return []Verdict{x.verdict(r.Evaluate(in), d.Name, set, subject{target: l.Target, class: c.Name})}
	default:
		in.Lock, in.LibraryFacts, in.Quorum = l, x.e.libraries(l.Library), x.e.redlocks.quorum(l.Target, l)
		return []Verdict{x.verdict(r.Evaluate(in), d.Name, set, onKey)}
	}
}

// verdict completes what the rule said of this lock.
func (x explanation) verdict(v Verdict, rule string, set setting, s subject) Verdict {
	v.Rule = rule
	if v.Finding == nil {
		return v
	}
	f := *v.Finding
	f.Target, f.DB, f.Key = s.target, s.db, s.key
	if f.Library == "" {
		f.Library = x.lock.Library
	}
	x.e.policy.complete(&f, rule, set, x.plan.class)
	f.Status, f.Since = locksteward.StatusPending, x.lock.At
	if set.wait == 0 {
		f.Status, f.FiredAt = locksteward.StatusFiring, x.lock.At
	}
	if known := x.e.table.find(s, rule, f.Subject); known != nil {
		f.Status, f.Since, f.FiredAt = known.kind.status, known.since, known.firedAt
		f.InhibitedBy = known.kind.inhibitedBy
	}
	v.Finding = &f
	return v
}

// losses gives the losses of the key that are on record, one verdict each.
func (x explanation) losses(rule string, s subject) []Verdict {
	var out []Verdict
	for tr := range x.e.table.of(s) {
		if tr.kind.rule == rule {
			f := tr.finding()
			out = append(out, Verdict{Rule: rule, Result: Fires, Reason: english(f.Summary), Finding: &f})
		}
	}
	if out == nil {
		out = []Verdict{{Rule: rule, Result: Clear, Reason: "no earlier hold of this key is known to have been lost"}}
	}
	return out
}
