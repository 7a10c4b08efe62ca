package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// SetRedlocks says which targets are the masters of one Redlock. The list must
// be one that [ValidateRedlocks] has nothing against.
func (e *Engine) SetRedlocks(list []Redlock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.redlocks.configure(slices.Clone(list))
}

// Paused says until when verdicts of death wait on a target, since a server was
// seen to restart or to be replaced, and why; false if they do not. A caller that acts
// on a rule that its class calls death (dead_when) waits too. A server that was
// merely found young delays [HolderDead] and [HostLost], which judge by what may
// have been lost with it, and nobody else.
func (e *Engine) Paused(target string, now time.Time) (until time.Time, why string, paused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	event, paused := e.situations[target].pause(now)
	if !paused || event.After.IsZero() {
		return time.Time{}, "", false
	}
	return event.Pause, pausedReason(event), true
}

// learn takes in what a sweep tells beyond its locks.
func (e *Engine) learn(s locksteward.Sweep) {
	if n := newSituation(s); n != nil {
		if old := e.situations[s.Target]; old != nil {
			n.HadLocks = n.HadLocks || old.HadLocks
			// The sweep does not know what a watch learnt after its end.
			for _, event := range old.Events {
				known := func(o locksteward.ServerEvent) bool {
					return o.Kind == event.Kind && o.Node == event.Node && o.At.Equal(event.At)
				}
				if event.Kind == locksteward.ServerFlushed && event.At.After(s.At) && !slices.ContainsFunc(n.Events, known) {
					n.Events = append(slices.Clone(n.Events), event)
				}
			}
		}
		e.situations[s.Target] = n
	}
	e.redlocks.look(s)
}

// unlearn forgets a target.
func (e *Engine) unlearn(target string) {
	delete(e.situations, target)
	delete(e.redlocks.masters, target)
}

// situated completes what a rule judges by what is known beyond it.
func (e *Engine) situated(target string, in Input) Input {
	in.Situation, in.situations = e.situations[target], e.situations
	if in.Lock != nil {
		in.LibraryFacts = e.libraries(in.Lock.Library)
		in.Quorum = e.redlocks.quorum(target, in.Lock)
	}
	return in
}

// beyondLocks is the policy of findings that belong to no class.
var beyondLocks = class.Class{}

// servers judges the servers of the target.
func (p *pass) servers(s locksteward.Sweep) {
	if len(s.Nodes) == 0 || s.NoServerFacts {
		return
	}
	p.judge(ScopeTarget, subject{target: p.target}, "", "", Input{Class: beyondLocks})
}

// hosts judges the locks of each host together, before its locks are judged one
// by one: what a lost host explains is inhibited.
func (p *pass) hosts(s locksteward.Sweep) {
	if !s.Complete() {
		return
	}
	type place struct {
		db   int
		host string
	}
	all := map[place]*Host{}
	of := func(db int, host string) *Host {
		at := place{db, host}
		if all[at] == nil {
			all[at] = &Host{Name: host}
		}
		return all[at]
	}
	for l := range s.AllLocks() {
		if l.Holder.Host != "" && l.Kind != locksteward.KindCandidate {
			of(l.DB, l.Holder.Host).add(l, p.at)
		}
	}
	for i := range s.Losses {
		if l := &s.Losses[i]; l.Holder.Host != "" {
			h := of(l.DB, l.Holder.Host)
			h.Losses = append(h.Losses, l)
		}
	}
	places := slices.SortedFunc(maps.Keys(all), func(a, b place) int { return cmp.Or(cmp.Compare(a.db, b.db), cmp.Compare(a.host, b.host)) })
	for _, at := range places {
		p.judge(ScopeHost, subject{target: p.target, db: at.db}, at.host, "", Input{Class: beyondLocks, Host: all[at]})
	}
	for tr := range p.e.table.beside(p.target) {
		if tr.kind.scope == ScopeHost && tr.confirmed != p.number {
			p.resolve(tr.subject(), tr, p.at, notFoundAgain)
		}
	}
}

// explains reports whether a finding inhibits what it explains: it fires and notifies.
func explains(f locksteward.Finding) bool {
	return f.Status == locksteward.StatusFiring && Notifies(f)
}

// inhibitor is the fingerprint of the finding that explains what a rule says of
// one lock, or of its loss: that the host of its holder is lost. "" if none does.
func (p *pass) inhibitor(rule string, db int, host string, stale bool) string {
	if host == "" || !stale || !inhibitedByHost[rule] {
		return ""
	}
	tr := p.e.table.find(subject{target: p.target, db: db}, HostLost, host)
	if tr == nil || !explains(tr.outline()) {
		return ""
	}
	return tr.outline().Fingerprint()
}

// beyond explains a rule that judges the lock's host or its servers.
func (x explanation) beyond(r Rule, in Input) Verdict {
	d, l := r.Doc(), x.lock
	set := x.e.policy.setting(d.Name, beyondLocks.Name)
	s := subject{target: l.Target}
	name := ""
	if d.Scope == ScopeHost {
		s.db, name = l.DB, l.Holder.Host
		known := x.e.table.find(s, d.Name, name)
		switch {
		case name == "":
			return Verdict{Rule: d.Name, Result: NotApplicable, Reason: "the lock does not say on which host its holder is"}
		case known == nil && in.Situation == nil:
			return Verdict{Rule: d.Name, Result: NotApplicable, Reason: "only single keys were read: sweeps judge the locks of a host together"}
		case known == nil:
			return Verdict{Rule: d.Name, Result: Clear, Reason: "the last sweep did not find host " + locksteward.DisplayKey(name) + " lost"}
		}
		f := known.finding()
		return Verdict{Rule: d.Name, Result: Fires, Reason: english(f.Summary), Finding: &f}
	}
	v := judgeServers(r, in)
	v.Rule = d.Name
	if v.Finding == nil {
		return v
	}
	f := *v.Finding
	f.Target, f.DB, f.Subject = s.target, s.db, name
	x.e.policy.complete(&f, d.Name, set, beyondLocks)
	f.Status, f.Since = locksteward.StatusPending, l.At
	if set.wait == 0 {
		f.Status, f.FiredAt = locksteward.StatusFiring, l.At
	}
	if known := x.e.table.find(s, d.Name, name); known != nil {
		f.Status, f.Since, f.FiredAt = known.kind.status, known.since, known.firedAt
	}
	v.Finding = &f
	return v
}
