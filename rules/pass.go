package rules

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// pass is one evaluation under the engine's mutex.
type pass struct {
	e           *Engine
	number      uint64
	policy      *policy
	target      string
	at          time.Time
	plans       map[string]*plan
	ended       map[subject]locksteward.Ending
	transitions []happened // numbered at the end
	// changed are the findings that came, went or changed their status.
	changed []*tracked
	// over is why all findings are over that this evaluation does not confirm; empty
	// where that depends on the finding.
	over locksteward.Message
	// deadlocks are the cycles that people are notified of; nil until asked for.
	deadlocks *deadlocks
}

func (e *Engine) begin(target string, at time.Time) *pass {
	e.passes++
	return &pass{e: e, number: e.passes, policy: e.policy, target: target, at: at, plans: map[string]*plan{}}
}

// orAt is a look's own time, or the evaluation's where it has none.
func (p *pass) orAt(t time.Time) time.Time {
	if t.IsZero() {
		return p.at
	}
	return t
}

// endings ends the findings on holds that are over. A finding on the next hold
// of the key begins anew.
func (p *pass) endings(endings []locksteward.Ending) {
	for _, end := range endings {
		s := subject{target: p.target, db: end.Lock.DB, key: end.Lock.Key}
		if p.ended == nil {
			p.ended = make(map[subject]locksteward.Ending, len(endings))
		}
		p.ended[s] = end
		for tr := range p.e.table.of(s) {
			if tr.kind.scope == ScopeLock {
				p.resolve(s, tr, p.orAt(end.At), p.whyEnded(end))
			}
		}
	}
}

// read is what a sweep or an update says of locks, of those who wait for them, and of
// holds that are over.
type read struct {
	locksteward.Update // but for its Locks
	locks              iter.Seq[*locksteward.Lock]
	complete           bool // there are no other locks
}

func readOf(u locksteward.Update) read { return read{Update: u, locks: locksteward.LocksOf(u.Locks)} }

func readOfSweep(s locksteward.Sweep) read {
	return read{Update: s.Update(), locks: s.AllLocks(), complete: s.Complete()}
}

// locks judges each lock that was looked at. After each of a number of them it asks
// step whether to go on.
func (p *pass) locks(locks iter.Seq[*locksteward.Lock], step func() bool) bool {
	n := 0
	for l := range locks {
		if n++; n%stepLocks == 0 && !step() {
			return false
		}
		s := subject{target: p.target, db: l.DB, key: l.Key}
		now := p.orAt(l.At)
		if end, ok := p.ended[s]; ok && !now.After(p.orAt(end.At)) && locksteward.SameHold(end.Lock.Observation, l.Observation) {
			continue // seen first, found gone later
		}
		for tr := range p.e.table.of(s) {
			if tr.kind.scope == ScopeLock {
				tr.confirmed = 0 // an earlier look in the same evaluation counts no more
			}
		}
		if l.Kind != locksteward.KindCandidate {
			p.lock(s, l, now)
		}
		for tr := range p.e.table.of(s) {
			if tr.kind.scope == ScopeLock && tr.confirmed != p.number {
				p.resolve(s, tr, now, notFoundAgain)
			}
		}
	}
	return true
}

func (p *pass) lock(s subject, l *locksteward.Lock, now time.Time) {
	pl := p.planFor(l.Class)
	in := p.e.situated(p.target, Input{Now: now, Class: pl.class, Lock: l})
	for i, r := range p.policy.locks {
		set := pl.settings[i]
		if set.off {
			continue
		}
		if v := r.Evaluate(in); v.Finding != nil {
			f := p.fill(*v.Finding, s, l.Library)
			rule := r.Doc().Name
			p.policy.complete(&f, rule, set, pl.class)
			f.InhibitedBy = cmp.Or(p.inhibitor(rule, s.db, l.Holder.Host, isStale(l, now)), p.deadlocked(rule, s))
			p.say(s, f, ScopeLock, now, set.waitOn(l, rule), l.History.FirstSeen)
		}
	}
}

// losses judges the holds that ended without a release.
func (p *pass) losses(losses []locksteward.Loss) {
	for i := range losses {
		l := losses[i]
		s := subject{target: p.target, db: l.DB, key: l.Key}
		c := p.planFor(l.Class).class
		now := p.orAt(l.At)
		for _, r := range p.policy.others[ScopeLoss] {
			rule := r.Doc().Name
			set := p.policy.setting(rule, c.Name)
			if set.off {
				continue
			}
			origin := lossOrigin{how: l.How, at: now}
			if known := p.e.table.find(s, rule, l.Claim.ID); known != nil {
				origin = known.reported().or(origin)
			}
			l.How, l.At = origin.how, origin.at
			v := r.Evaluate(p.e.situated(p.target, Input{Now: now, Class: c, Loss: &l}))
			if v.Finding == nil {
				continue
			}
			f := p.fill(*v.Finding, s, lossLibrary)
			f.Subject = l.Claim.ID
			p.policy.complete(&f, rule, set, c)
			f.InhibitedBy = cmp.Or(p.taken(&l), p.inhibitor(rule, s.db, l.Holder.Host, l.Instance == nil))
			p.say(s, f, ScopeLoss, now, set.wait, time.Time{}).loss = &origin
		}
	}
}

// or returns the first report, unless it knew less than the later one.
func (o lossOrigin) or(later lossOrigin) lossOrigin {
	if o.how == "" || o.how == locksteward.EndedExpired && later.how != locksteward.EndedExpired {
		return later
	}
	return o
}

// lossLibrary is the one library whose locks report their loss: its metadata
// outlives them.
const lossLibrary = "locksteward"

// groups judges the locks of each class together. Only a complete sweep comes
// here: part of a class is no basis for a count.
func (p *pass) groups(sweep locksteward.Sweep) {
	members := map[subject]*Group{}
	for l := range sweep.AllLocks() {
		if l.Kind == locksteward.KindCandidate {
			continue
		}
		s := subject{target: p.target, db: l.DB, class: p.planFor(l.Class).class.Name}
		if members[s] == nil {
			members[s] = &Group{}
		}
		members[s].add(l)
	}
	for s, group := range members {
		p.judge(ScopeClass, s, "", "", Input{Class: p.planFor(s.class).class, Group: group})
	}
}

// judge runs the rules of a scope on one subject, of which id tells apart several findings
// on the same key or class. It reports whether one of them says that something is wrong.
func (p *pass) judge(scope Scope, at subject, id, library string, in Input) bool {
	in.Now = p.at
	in = p.e.situated(p.target, in)
	found := false
	for _, r := range p.policy.others[scope] {
		rule := r.Doc().Name
		set := p.policy.setting(rule, in.Class.Name)
		if set.off {
			continue
		}
		v := r.Evaluate(in)
		if v.Finding == nil {
			continue
		}
		f := p.fill(*v.Finding, at, library)
		f.Subject = id
		p.policy.complete(&f, rule, set, in.Class)
		wait := set.wait
		if in.Cycle != nil && !in.Cycle.Proven {
			wait = never
		}
		p.say(at, f, scope, p.at, wait, time.Time{})
		found = true
	}
	return found
}

// resolveUnseen ends the target's findings that neither this evaluation nor one since
// its begin confirmed or kept.
func (p *pass) resolveUnseen() {
	for tr := range p.e.table.on(p.target) {
		if tr.confirmed < p.number {
			why := p.over
			if why.ID == "" {
				why = whyUnseen(tr.kind)
			}
			p.resolve(tr.subject(), tr, p.at, why)
		}
	}
}

func (p *pass) planFor(className string) *plan {
	pl, ok := p.plans[className]
	if !ok {
		pl = p.policy.plan(className)
		p.plans[className] = pl
	}
	return pl
}

// fill sets what a finding is about.
func (p *pass) fill(f locksteward.Finding, s subject, library string) locksteward.Finding {
	f.Target, f.DB, f.Key = s.target, s.db, s.key
	f.Library = cmp.Or(f.Library, library)
	return f
}

// say records that a rule says f at now, and returns where.
func (p *pass) say(s subject, f locksteward.Finding, scope Scope, now time.Time, wait time.Duration, heldSince time.Time) *tracked {
	tr := p.e.table.find(s, f.Rule, f.Subject)
	fresh := tr == nil
	if fresh {
		f.Status, f.Since, f.FiredAt = locksteward.StatusPending, now, time.Time{}
		tr = &tracked{kept: p.e.kinds.keep(f, scope), key: f.Key, id: f.Subject}
		p.e.table.put(s, tr)
	}
	tr.confirmed = p.number
	was := tr.kept
	next, ended, notify, changed := tr.advance(f, now, wait, heldSince)
	if !fresh || changed {
		tr.kept = p.e.kinds.keep(next, scope)
	}
	if fresh || changed {
		p.changed = append(p.changed, tr)
	}
	if ended {
		p.transitions = append(p.transitions, happened{tr: tr, kept: was, at: now, ended: true, why: lessSevere})
	}
	if notify {
		p.transitions = append(p.transitions, happened{tr: tr, kept: tr.kept, at: now})
	}
	return tr
}

// resolve ends a finding; one that never fired ends in silence.
func (p *pass) resolve(s subject, tr *tracked, at time.Time, why locksteward.Message) {
	p.e.table.drop(s, tr)
	p.changed = append(p.changed, tr)
	if tr.kind.status == locksteward.StatusFiring {
		p.transitions = append(p.transitions, happened{tr: tr, kept: tr.kept, at: at, ended: true, why: why})
	}
}

// finish numbers the transitions. The sort is stable: what happened to one
// finding stays in its order.
func (p *pass) finish() Transitions {
	p.e.marks.note(p.e.table, p.changed)
	slices.SortStableFunc(p.transitions, happened.compare)
	for i := range p.transitions {
		p.e.seq++
		p.transitions[i].id, p.transitions[i].seq = p.e.newEventID(), p.e.seq
	}
	p.e.unsaved(p.target, p.changed, p.transitions)
	return Transitions{p.transitions}
}
