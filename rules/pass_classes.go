package rules

import (
	"cmp"
	"maps"
	"slices"

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
		p.judge(ScopeOrder, subject{target: p.target, db: id.db, class: id.first}, id.then, "", Input{
			Class: p.planFor(id.first).class, Inversion: inversions[id],
		})
	}
	if p.at.Sub(known.began) < orderWindow {
		// A finding from before a restart may no longer be remembered and still be true.
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
		at := subject{target: p.target, class: cmp.Or(name, class.Default)}
		judged[at.class] = a.Acquired+a.Failed >= minAttempts
		p.judge(ScopeActivity, at, "", "", Input{Class: p.planFor(at.class).class, Activity: a})
	}
	if p.at.Sub(known.began) < activityWindow {
		p.keepClasses(ScopeActivity, func(s subject, _ locksteward.Finding) bool { return judged[s.class] })
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
