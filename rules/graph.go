package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Awaited is a lock that somebody waits for, as far as its waiters are known
// apart.
type Awaited struct {
	Target string
	DB     int
	Key    string // exact bytes
	Class  string
	// Session has the lock; "" if that is not known. Of a hold without a session it
	// is the id of the hold.
	Session  string
	Acquired time.Time // zero: not known
	Purpose  string
	Holder   locksteward.Holder
	// Inferred says that only another lock of the session tells that it has this
	// one.
	Inferred bool
	// Waiters are in the order of their arrival.
	Waiters []locksteward.Waiter
}

// SessionOf is the thread of work that a call belongs to: a call without a
// session is one of its own.
func SessionOf(w locksteward.Waiter) string { return cmp.Or(w.Session, w.ID) }

// Waits returns who waits for whom: the locks of a target that somebody waits
// for, or of all if it is "", in the order of target, database and key, and the
// cycles that go through one of them. The locks of other targets that belong to
// such a cycle are there too. Locks of libraries that tell only how many wait are
// not.
func (e *Engine) Waits(target string) ([]Awaited, []Cycle) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := &e.waits
	chosen := map[*awaited]bool{}
	for name, t := range g.targets {
		if target != "" && name != target {
			continue
		}
		for _, a := range t.locks {
			chosen[a] = true
		}
	}
	var found []*cycle
	for _, c := range g.cycles {
		if slices.ContainsFunc(c.members, func(m member) bool { return chosen[m.wait.on] }) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *cycle) int { return cmp.Compare(a.id, b.id) })
	cycles := make([]Cycle, 0, len(found))
	for _, c := range found {
		cycles = append(cycles, *g.describe(c))
		for _, m := range c.members {
			chosen[m.wait.on] = true
		}
	}
	locks := make([]Awaited, 0, len(chosen))
	for a := range chosen {
		locks = append(locks, a.tell())
	}
	slices.SortFunc(locks, func(a, b Awaited) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	})
	return locks, cycles
}

func (a *awaited) tell() Awaited {
	h := a.holder
	out := Awaited{
		Target: a.target, DB: a.id.DB, Key: a.id.Key, Class: a.class, Session: h.session,
		Acquired: h.acquired, Purpose: h.purpose, Holder: h.who, Inferred: h.inferred,
	}
	for _, w := range a.waits {
		out.Waiters = append(out.Waiters, w.Waiter)
	}
	slices.SortFunc(out.Waiters, func(a, b locksteward.Waiter) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return out
}
