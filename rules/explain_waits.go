package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/locksteward/locksteward"
)

// waitersOf returns those who were last seen to wait for a lock, the longest
// first.
func (g *waits) waitersOf(at subject) []locksteward.Waiter {
	t := g.targets[at.target]
	if t == nil || t.locks[LockKey{at.db, at.key}] == nil {
		return nil
	}
	var out []locksteward.Waiter
	for _, w := range t.locks[LockKey{at.db, at.key}].waits {
		out = append(out, w.Waiter)
	}
	slices.SortStableFunc(out, func(a, b locksteward.Waiter) int { return a.Since.Compare(b.Since) })
	return out
}

// cycles gives the cycles in which somebody waits for the lock, one verdict
// each. Their finding is on the victim's lock, which may be another one.
func (x explanation) cycles(r Rule, in Input, set setting, onKey subject) []Verdict {
	g, rule := &x.e.waits, r.Doc().Name
	var out []Verdict
	for _, id := range slices.Sorted(maps.Keys(g.cycles)) {
		c := g.cycles[id]
		through := slices.ContainsFunc(c.members, func(m member) bool {
			a := m.wait.on
			return a.target == onKey.target && a.id == LockKey{onKey.db, onKey.key}
		})
		if !through || !g.stands(c) {
			continue
		}
		in.Cycle = g.describe(c)
		v := r.Evaluate(in)
		if v.Finding != nil {
			v.Finding.Subject = id
			if c.home() != onKey {
				v.Reason += fmt.Sprintf("; the finding is on lock %s", locksteward.DisplayKey(c.home().key))
			}
			if !in.Cycle.Proven {
				set.wait = never
			}
		}
		there := x
		there.plan = x.e.policy.plan(c.holds(c.victim).class)
		out = append(out, there.verdict(v, rule, set, c.home()))
	}
	if out == nil {
		out = []Verdict{x.verdict(r.Evaluate(in), rule, set, onKey)}
	}
	return out
}

// orders gives the inversions of the lock's class, one verdict each. A finding
// is on the class whose name comes first.
func (x explanation) orders(r Rule, in Input, set setting) []Verdict {
	l, rule, class := x.lock, r.Doc().Name, x.plan.class.Name
	var out []Verdict
	if known := x.e.orders[l.Target]; known != nil {
		inversions := known.inversions()
		for id, v := range inversions {
			if id.db != l.DB || id.first != class && id.then != class {
				continue
			}
			in.Inversion = v
			verdict := r.Evaluate(in)
			if verdict.Finding != nil {
				verdict.Finding.Subject = id.then
			}
			there := x
			there.plan = x.e.policy.plan(id.first)
			out = append(out, there.verdict(verdict, rule, set, subject{target: l.Target, db: id.db, class: id.first}))
		}
	}
	if out == nil {
		in.Inversion = nil
		out = []Verdict{x.verdict(r.Evaluate(in), rule, set, subject{target: l.Target, db: l.DB, class: class})}
	}
	slices.SortFunc(out, func(a, b Verdict) int { return cmp.Compare(a.Reason, b.Reason) })
	return out
}
