package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// waits is who waits for whom over all targets, as the last readings show. A
// session that waits for a lock is an edge to the session that has it; only
// locks that somebody waits for are kept, so it is as large as the number of
// waiters.
type waits struct {
	targets map[string]*targetWaits
	// waiting are the edges by the session that waits, nearly always one each.
	waiting map[string][]*wait
	// cycles are those that stand, or stood at the last look, by their ids.
	cycles map[string]*cycle
	// findings is where the findings on cycles are, by the same ids.
	findings map[string]subject
}

// targetWaits is the part of one target.
type targetWaits struct {
	locks map[LockKey]*awaited
	// whole says that a complete sweep was seen: who is not here does not wait.
	whole bool
}

// awaited is a lock that somebody waits for, and who has it.
type awaited struct {
	target string
	id     LockKey
	class  string
	holder holding
	waits  []*wait
}

// holding is one hold of an awaited lock. The zero value is "not known".
type holding struct {
	session  string
	claim    string // id of the acquisition; the token's digest where it has no metadata
	acquired time.Time
	who      locksteward.Holder
	purpose  string
	// inferred says that the lock itself does not name its session: another lock
	// of the session says that it had this one.
	inferred bool
	seen     span
}

func (h holding) known() bool { return h.session != "" }

// wait is one call that waits.
type wait struct {
	locksteward.Waiter
	on   *awaited
	seen span
}

// session is the logical thread of work that waits: a call without one is a
// session of its own, which has the id of the hold that it wants.
func (w *wait) session() string { return cmp.Or(w.Session, w.ID) }

// edge says that the wait leads on: somebody else's hold is in its way.
func (w *wait) edge() bool { return w.on.holder.known() && w.on.holder.claim != w.ID }

// span is when something was there: it was first seen before until, and is
// known to have been there still when a later read began.
type span struct {
	reads int
	until time.Time // the end of the first read
	still time.Time // the beginning of the last one
}

// again is the span after one more read.
func (s span) again(r readSpan) span {
	if s.reads == 0 {
		return span{reads: 1, until: r.end, still: r.begin}
	}
	s.reads++
	s.still = r.begin
	return s
}

// both is when two things were there together.
func (s span) both(o span) span {
	b := span{reads: min(s.reads, o.reads), until: s.until, still: s.still}
	if o.until.After(b.until) {
		b.until = o.until
	}
	if o.still.Before(b.still) {
		b.still = o.still
	}
	return b
}

// proven says that two reads saw it, with a moment between them at which all of
// it was there.
func (s span) proven() bool { return s.reads >= 2 && !s.still.Before(s.until) }

// readSpan is when a sweep was made. Sweeps of several targets are compared by
// the agent's clock, which they share; without it, by that of the server.
type readSpan struct{ begin, end time.Time }

func readSpanOf(s read) readSpan {
	if s.Started.IsZero() {
		return readSpan{begin: s.At, end: s.At}
	}
	return readSpan{begin: s.Started, end: s.Started.Add(s.Duration)}
}

func newWaits() waits {
	return waits{
		targets: map[string]*targetWaits{}, waiting: map[string][]*wait{}, cycles: map[string]*cycle{}, findings: map[string]subject{},
	}
}

func (g *waits) target(name string) *targetWaits {
	t, ok := g.targets[name]
	if !ok {
		t = &targetWaits{locks: map[LockKey]*awaited{}}
		g.targets[name] = t
	}
	return t
}

// lockFacts is what one reading shows of who waits for one lock and who has it.
type lockFacts struct {
	id      LockKey
	class   string
	lock    *locksteward.Lock // nil: not seen
	waiters []locksteward.Waiter
	// known says that waiters are all who wait: more may be counted than were
	// read.
	known bool
}

// facts sorts a read by the locks that somebody waits for, as it says or as was
// known before. A read that is not complete only reports the locks in it.
func (g *waits) facts(s read) []lockFacts {
	var before map[LockKey]*awaited
	if t := g.targets[s.Target]; t != nil {
		before = t.locks
	}
	if len(s.Waiters) == 0 && len(before) == 0 {
		return nil
	}
	size := len(s.Waiters)
	if s.complete {
		size = max(size, len(before))
	}
	at, out := make(map[LockKey]int, size), make([]lockFacts, 0, size)
	of := func(id LockKey) *lockFacts {
		i, ok := at[id]
		if !ok {
			i = len(out)
			at[id] = i
			out = append(out, lockFacts{id: id})
		}
		return &out[i]
	}
	for _, w := range s.Waiters {
		f := of(LockKey{w.DB, w.Key})
		f.waiters, f.class, f.known = append(f.waiters, w), w.Class, true
	}
	for _, end := range s.Endings {
		if id := (LockKey{end.Lock.DB, end.Lock.Key}); before[id] != nil {
			of(id)
		}
	}
	if s.complete {
		for id := range before {
			of(id)
		}
	}
	for l := range s.locks {
		id := LockKey{l.DB, l.Key}
		if _, ok := at[id]; !ok && before[id] == nil {
			continue
		}
		f := of(id)
		f.lock = new(*l)
		f.class = cmp.Or(f.class, l.Class)
		f.known = l.Waiters == len(f.waiters) || f.known && l.Waiters < 0
	}
	slices.SortFunc(out, func(a, b lockFacts) int {
		return cmp.Or(cmp.Compare(a.id.DB, b.id.DB), cmp.Compare(a.id.Key, b.id.Key))
	})
	return out
}

// update applies a reading and returns the sessions whose waits it shows.
func (g *waits) update(s read, facts []lockFacts) (touched []string) {
	t := g.target(s.Target)
	t.whole = t.whole || s.complete
	read := readSpanOf(s)
	inferred := inferHolders(s, facts)
	over := make(map[LockKey]*locksteward.Ending, len(s.Endings))
	touched = make([]string, 0, len(s.Waiters))
	for i := range s.Endings {
		over[LockKey{s.Endings[i].Lock.DB, s.Endings[i].Lock.Key}] = &s.Endings[i]
	}
	for i := range facts {
		f := &facts[i]
		a := t.locks[f.id]
		if a == nil {
			a = &awaited{target: s.Target, id: f.id}
			t.locks[f.id] = a
		}
		a.class = cmp.Or(f.class, a.class)
		a.hold(f.lock, inferred[f.id], over[f.id], read)
		if f.known || f.lock == nil && s.complete {
			g.replace(a, f.waiters, read)
		}
		for _, w := range a.waits {
			touched = append(touched, w.session())
		}
		if len(a.waits) == 0 {
			delete(t.locks, f.id)
		}
	}
	return touched
}

// hold notes who has the lock now. A lock that was not seen has the holder that
// it had, unless that hold is known to be over.
func (a *awaited) hold(l *locksteward.Lock, inferred holding, over *locksteward.Ending, read readSpan) {
	if l == nil {
		if over != nil && claimOf(&over.Lock) == a.holder.claim {
			a.holder = holding{}
		}
		return
	}
	now := holding{who: l.Holder, claim: claimOf(l)}
	switch {
	case l.Claim != nil:
		now.session, now.acquired, now.purpose = cmp.Or(l.Claim.Session, l.Claim.ID), l.Claim.Acquired, l.Claim.Purpose
	case l.Session != nil && l.Session.Thread != "":
		now.session = l.Session.Thread
	case inferred.known() && now.claim != "":
		now.session, now.acquired, now.inferred = inferred.session, inferred.acquired, true
	case now.claim == a.holder.claim && now.claim != "":
		now = a.holder // the key that shows it may just not have been read
	default:
		a.holder = holding{}
		return
	}
	if now.claim == a.holder.claim && now.session == a.holder.session {
		now.seen = a.holder.seen
	}
	now.seen = now.seen.again(read)
	a.holder = now
}

// claimOf is what tells this hold of a lock from the next one.
func claimOf(l *locksteward.Lock) string {
	if l.Claim != nil {
		return l.Claim.ID
	}
	return l.TokenDigest
}

// replace puts those who wait for a now in the place of those who did.
func (g *waits) replace(a *awaited, waiters []locksteward.Waiter, read readSpan) {
	before := make(map[string]*wait, len(a.waits))
	for _, w := range a.waits {
		before[w.ID] = w
	}
	a.waits = nil
	for _, w := range waiters {
		if old := before[w.ID]; old != nil && old.Session == w.Session {
			old.Waiter, old.seen = w, old.seen.again(read)
			a.waits = append(a.waits, old)
			delete(before, w.ID)
			continue
		}
		one := &wait{Waiter: w, on: a, seen: span{}.again(read)}
		a.waits = append(a.waits, one)
		g.waiting[one.session()] = append(g.waiting[one.session()], one)
	}
	for _, gone := range before {
		g.leave(gone)
	}
}

func (g *waits) leave(gone *wait) {
	s := gone.session()
	rest := slices.DeleteFunc(g.waiting[s], func(w *wait) bool { return w == gone })
	if len(rest) == 0 {
		delete(g.waiting, s)
		return
	}
	g.waiting[s] = rest
}

// remove forgets a target: whatever went through it is broken.
func (g *waits) remove(name string) {
	t := g.target(name)
	for _, a := range t.locks {
		for _, w := range a.waits {
			g.leave(w)
		}
	}
	g.targets[name] = &targetWaits{locks: map[LockKey]*awaited{}, whole: true}
}

// inferHolders names the sessions of awaited locks that do not name them
// themselves: another lock of the session says that it held this one when it
// was taken. The last one to say so is believed.
func inferHolders(s read, facts []lockFacts) map[LockKey]holding {
	var wanted map[LockKey]holding
	for i := range facts {
		if l := facts[i].lock; l != nil && l.Claim == nil {
			if wanted == nil {
				wanted = map[LockKey]holding{}
			}
			wanted[facts[i].id] = holding{}
		}
	}
	if wanted == nil {
		return nil
	}
	for l := range s.locks {
		if l.Claim == nil || l.Claim.Session == "" {
			continue
		}
		for _, key := range l.Claim.Holding {
			id := LockKey{l.DB, key}
			if h, ok := wanted[id]; ok && (!h.known() || l.Claim.Acquired.After(h.acquired)) {
				wanted[id] = holding{session: l.Claim.Session, acquired: l.Claim.Acquired}
			}
		}
	}
	return wanted
}
