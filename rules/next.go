package rules

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/rules/expr"
)

// justAfter is added to a moment beyond which something is wrong.
const justAfter = time.Millisecond

// NextLook returns the earliest server time after l's last look at which a rule
// may say something else of l although nobody writes to it: a `for:` has passed,
// the hold is past its expectation, its renewal is late, its TTL is below the
// class's limit, a comparison of durations or times in a rule of the
// configuration's own turns. It is zero where time alone changes nothing that is
// known of; what else an expression makes of time (the hour of the day) only
// sweeps tell. Its cost does not depend on how many locks or findings there are.
func (e *Engine) NextLook(l *locksteward.Lock) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	var next time.Time
	at := func(t time.Time) {
		if t.After(l.At) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	c := e.policy.classOf(l.Class)
	for tr := range e.table.of(subject{target: l.Target, db: l.DB, key: l.Key}) {
		if tr.kind.status != locksteward.StatusPending || tr.kind.scope != ScopeLock {
			continue
		}
		if wait := e.policy.setting(tr.kind.rule, c.Name).waitOn(l, tr.kind.rule); wait < maxInterval {
			at(tr.since.Add(wait))
		}
	}
	in := Input{Now: l.At, Class: c, Lock: l}
	if age := provenAge(l); age.basis != locksteward.AgeNone {
		if left := expectation(in) - age.proven; left >= 0 && expectation(in) > 0 {
			at(l.At.Add(left + justAfter))
		}
	} else if expect := expectation(in); expect > 0 {
		at(l.At.Add(expect + justAfter)) // seen just now for the first time
	}
	if r := judgeRenewal(l, e.libraries(l.Library), l.At); r.onTime() {
		at(l.At.Add(justAfter - r.overdue))
	}
	if c.WarnTTLBelow > 0 && l.TTL >= c.WarnTTLBelow {
		at(l.At.Add(l.TTL - c.WarnTTLBelow + justAfter))
	}
	for _, r := range e.policy.locks {
		if own, ok := r.(custom); ok && !e.policy.setting(own.doc.Name, c.Name).off {
			if after, ok := own.next(in); ok {
				at(l.At.Add(after))
			}
		}
	}
	return next
}

// next is after how long the expression says something else of the lock.
func (r custom) next(in Input) (time.Duration, bool) {
	if len(r.classes) > 0 && !slices.Contains(r.classes, in.Class.Name) {
		return 0, false
	}
	f := factsOf(in)
	l := in.Lock
	if _, basis, _ := l.Age(); basis == locksteward.AgeNone && !(l.SharedToken && l.TTL == locksteward.NoExpiry) {
		f.Age = expr.Age{Basis: locksteward.AgeObserved, Minimum: true} // seen just now for the first time
	}
	after, ok := r.program.Next(&f)
	return after, ok && after < maxInterval
}

// EvaluateWatched is [Engine.EvaluateDirect] of what a watch read, with the
// losses that it proves: that a hold was lost is as sure from one look as from a
// sweep. Whether a loss is forgotten again, sweeps tell.
func (e *Engine) EvaluateWatched(u locksteward.Update) []locksteward.Transition {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.update(u)
	p.addEvents(u.Events)
	p.losses(u.Losses)
	return p.finish().List()
}
