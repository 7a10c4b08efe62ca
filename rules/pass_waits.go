package rules

import (
	"math"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// never is a `for:` that no finding reaches: it stays pending.
const never = time.Duration(math.MaxInt64)

// waits judges who waits: the waiters of each lock, and over all targets the
// cycles that a change on this one may have made or broken. It comes before the
// locks are judged one by one: what a deadlock explains is inhibited.
func (p *pass) waits(s read) {
	g := &p.e.waits
	facts := g.facts(s)
	p.starved(s, facts)
	touched := g.update(s, facts)
	g.drop()
	g.find(touched)
	p.cycles()
}

// starved judges the waiters of each lock that somebody waits for.
func (p *pass) starved(s read, facts []lockFacts) {
	known := make(map[LockKey]bool, len(facts))
	for i := range facts {
		f := &facts[i]
		at := subject{target: p.target, db: f.id.DB, key: f.id.Key}
		known[f.id] = true
		if !f.known && (f.lock != nil || !s.complete) {
			// How long they wait was not read this time; what was so may be so.
			p.keep(at, ScopeWaiters)
			continue
		}
		slices.SortStableFunc(f.waiters, func(a, b locksteward.Waiter) int { return a.Since.Compare(b.Since) })
		p.waitersOf(at, f)
		p.settle(at, ScopeWaiters)
	}
	for l := range s.locks {
		if l.Waiters < 0 || known[LockKey{l.DB, l.Key}] {
			continue
		}
		at := subject{target: p.target, db: l.DB, key: l.Key}
		if l.Waiters > 0 {
			p.keep(at, ScopeWaiters) // more than were read
			continue
		}
		p.settle(at, ScopeWaiters)
	}
}

func (p *pass) waitersOf(at subject, f *lockFacts) {
	if len(f.waiters) == 0 {
		return
	}
	// Only our own library has waiters that can be seen.
	p.judge(ScopeWaiters, at, "", lossLibrary, Input{Class: p.planFor(f.class).class, Lock: f.lock, Waiters: f.waiters})
}

// settle ends the findings of a scope that were not said again.
func (p *pass) settle(at subject, scope Scope) {
	for tr := range p.e.table.of(at) {
		if tr.kind.scope == scope && tr.confirmed != p.number {
			p.resolve(at, tr, p.at, notFoundAgain)
		}
	}
}

// keep leaves the findings of a scope as they are: nothing was learned of them.
func (p *pass) keep(at subject, scope Scope) {
	for tr := range p.e.table.of(at) {
		if tr.kind.scope == scope {
			tr.confirmed = p.number
		}
	}
}

// cycles says what is known of the cycles whose findings are on this target, and
// ends those that are broken. Findings of other targets wait for their own turn,
// so that a target's findings only change when it is judged.
func (p *pass) cycles() {
	g := &p.e.waits
	ids := make([]string, 0, len(g.cycles))
	for id := range g.cycles {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if c := g.cycles[id]; c.home().target == p.target {
			p.cycle(c)
		}
	}
	for id, at := range g.findings {
		if at.target != p.target {
			continue
		}
		tr := p.e.table.find(at, WaitCycle, id)
		switch {
		case tr == nil:
			delete(g.findings, id)
		case tr.confirmed == p.number:
		case g.cycles[id] == nil && !g.seenWhole(targetsOf(id, at.target)):
			tr.confirmed = p.number // from before a restart: not all of it was looked at since
		default:
			p.resolve(at, tr, p.at, notFoundAgain)
			delete(g.findings, id)
		}
	}
}

func (p *pass) cycle(c *cycle) {
	at := c.home()
	in := Input{Class: p.planFor(c.holds(c.victim).class).class, Cycle: p.e.waits.describe(c)}
	if p.judge(ScopeCycle, at, c.id, lossLibrary, in) {
		p.e.waits.findings[c.id] = at
	}
}

// seenWhole says that each of the targets was read in full since the start.
func (g *waits) seenWhole(targets []string) bool {
	for _, name := range targets {
		if t := g.targets[name]; t == nil || !t.whole {
			return false
		}
	}
	return true
}
