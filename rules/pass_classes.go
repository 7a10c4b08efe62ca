package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// otherClasses is what a process counts beyond its first classes (lock/record);
// it is no class, so it is not judged as one.
const otherClasses = "_other"

// orders judges the classes that were taken in both orders.
func (p *pass) orders(s locksteward.Sweep) {
	known := p.e.orders.take(s, p.policy)
	inversions := known.inversions()
	ids := slices.SortedFunc(maps.Keys(inversions), func(a, b orderID) int {
		return cmp.Or(cmp.Compare(a.db, b.db), cmp.Compare(a.first, b.first), cmp.Compare(a.then, b.then))
	})
	for _, id := range ids {
		p.onClass(subject{target: p.target, db: id.db, class: id.first}, ScopeOrder, id.then, Input{Inversion: inversions[id]})
	}
	if p.at.Sub(known.began) < orderWindow {
		// What was told before a restart may be remembered no longer, and be so.
		p.keepClasses(ScopeOrder, func(s subject, f locksteward.Finding) bool {
			_, judged := inversions[orderID{db: s.db, first: s.class, then: f.Subject}]
			return judged
		})
	}
}

// activities judges how often acquires of each class fail.
func (p *pass) activities(s locksteward.Sweep) {
	known := p.e.activities.take(s)
	judged := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(known.classes)) {
		if name == otherClasses {
			continue
		}
		a := known.of(name, p.at)
		judged[cmp.Or(name, class.Default)] = a.Acquired+a.Failed >= minAttempts
		p.onClass(subject{target: p.target, class: cmp.Or(name, class.Default)}, ScopeActivity, "", Input{Activity: a})
	}
	if p.at.Sub(known.began) < activityWindow {
		p.keepClasses(ScopeActivity, func(s subject, _ locksteward.Finding) bool { return judged[s.class] })
	}
}

// onClass runs the rules of a scope on one class.
func (p *pass) onClass(at subject, scope Scope, id string, in Input) {
	c := p.planFor(at.class).class
	in.Now, in.Class = p.at, c
	for _, r := range p.policy.others[scope] {
		rule := r.Doc().Name
		set := p.policy.setting(rule, c.Name)
		if set.off {
			continue
		}
		if v := r.Evaluate(in); v.Finding != nil {
			f := p.fill(*v.Finding, at, "")
			f.Subject = id
			p.policy.complete(&f, rule, set, c)
			p.say(at, f, scope, p.at, set.wait, time.Time{})
		}
	}
}

// keepClasses leaves findings about classes as they are that were not judged:
// what they rest on is not known yet.
func (p *pass) keepClasses(scope Scope, judged func(subject, locksteward.Finding) bool) {
	for tr := range p.e.table.beside(p.target) {
		s := tr.subject()
		off := p.policy.setting(tr.kind.rule, s.class).off
		if tr.kind.scope == scope && tr.confirmed != p.number && !off && !judged(s, tr.outline()) {
			tr.confirmed = p.number
		}
	}
}
