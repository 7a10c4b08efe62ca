package exporter

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/locksteward/locksteward"
)

// target is all that is kept of one target.
type target struct {
	name string

	// state is what SetTarget said last, nil before that.
	state *locksteward.TargetState
	// release is what SetReleaseEnabled said last, nil before that.
	release *bool

	// leader is what SetLeader said last, unsaved what SetUnsaved did; nil before.
	leader  *right
	unsaved *int

	// known are the locks not known to be over. pass counts sweeps with masters;
	// began is the server time at the start of the first of them, and whole says
	// that one of them was complete.
	known memory
	pass  uint32
	began time.Time
	whole bool
	// losses are those counted, by the pass that saw them last.
	losses map[lossID]uint32
	// processes are the last heartbeats.
	processes map[string]heartbeat

	sweep    sweepFigures
	gauges   map[string]*lockGauges // by class; nil while the target is away
	worst    worst
	findings map[string]map[findingID]int // by class
	tallies  map[string]*tally            // by class, Other among them
	// throttled are the seconds that sweeps waited, by reason.
	throttled map[string]float64
	pace      float64 // 0 before the first sweep
	paused    bool
	// refused is what SetRefused said last.
	refused []string

	// watch is what SetWatch said last, nil before that, watchedBefore what watches
	// before it had counted; stale says that the gauges are behind the locks.
	watch         *Watch
	watchedBefore Watch
	stale         bool
}

// lossID names one lost hold.
type lossID struct {
	lock  lockHash
	claim string
}

// sweepFigures are those of the last sweep.
type sweepFigures struct {
	attempted   bool
	complete    bool
	away        bool // no master could be asked
	duration    time.Duration
	keys        float64   // of all sweeps
	lastSuccess time.Time // zero before the first
	candidates  int
}

// findingID is what firing findings of a class are counted by.
type findingID struct {
	rule     string
	severity string
	risk     string
}

// lockGauges are the gauges of the locks of one class.
type lockGauges struct {
	libraries  map[string]int
	withoutTTL int
	overdue    int
	waiters    int64
	longest    float32 // seconds
	hasExpect  bool
	hasWaiters bool
	hasAge     bool
}

// tally are the counters of one class. They only grow.
type tally struct {
	foreign  counted // holds of libraries that count nothing themselves
	seen     counted // holds of our library, as sweeps saw them
	reported counted // by processes in their heartbeats
	expired  float64
	claimed  bool // a holder or a process that counts was seen
	releases map[string]float64
	hold     prometheus.Histogram // nil before the first ended hold
}

func newTarget(name string, cfg Config) *target {
	return &target{
		name:      name,
		known:     newMemory(),
		worst:     worst{most: cfg.TopLocks, names: cfg.KeyNames},
		losses:    map[lossID]uint32{},
		processes: map[string]heartbeat{},
		tallies:   map[string]*tally{},
		throttled: map[string]float64{},
	}
}

// tallyOf returns the counters that events of class count into.
func (e *Exporter) tallyOf(t *target, class string) *tally {
	class = e.shown(class)
	c, ok := t.tallies[class]
	if !ok {
		c = &tally{}
		t.tallies[class] = c
	}
	return c
}

// observe takes one sweep in.
func (e *Exporter) observe(t *target, s locksteward.Sweep) {
	t.sweep.attempted = true
	t.sweep.duration = s.Duration
	t.sweep.complete = s.Complete()
	t.sweep.away = len(s.Masters) == 0
	t.sweep.keys += float64(s.Keys())
	t.sweep.candidates = s.Candidates
	if t.sweep.complete {
		t.sweep.lastSuccess = s.Started.Add(s.Duration)
	}
	if t.sweep.away {
		// Old numbers would pass for new ones. What is known of each lock stays, so
		// that counters go on where they were when the target is back.
		t.gauges = nil
		return
	}
	first := t.pass == 0
	t.pass++
	if first {
		t.began = s.At.Add(-s.Duration)
	}
	t.worst.begin()
	e.count(t, s.AllLocks(), s.Endings, s.Losses, first)
	e.hear(t, s)
	t.forget(s)
	t.worst.carry(&t.known, uint16(t.pass))
	t.whole = t.whole || t.sweep.complete
	t.known.settle()
	t.measure()
}

// recheck takes in direct reads of some locks. They say nothing of the others,
// nor of the next sweep.
func (e *Exporter) recheck(t *target, u locksteward.Update) {
	if t.pass == 0 {
		return // nothing to compare with yet
	}
	e.count(t, locksteward.LocksOf(u.Locks), u.Endings, u.Losses, false)
	t.known.settle()
	if t.gauges != nil {
		t.measure()
	}
}

// count counts what is new in a sweep or an update; first says that nothing was known
// before.
func (e *Exporter) count(t *target, locks iter.Seq[*locksteward.Lock], endings []locksteward.Ending, losses []locksteward.Loss, first bool) {
	for _, ending := range endings {
		e.countEnding(t, ending)
	}
	for _, l := range losses {
		e.countLoss(t, l, first)
	}
	for l := range locks {
		if l.Kind != locksteward.KindCandidate {
			e.countLock(t, l, first)
		}
	}
}

// countLock counts what is new about a lock since the look before.
func (e *Exporter) countLock(t *target, l *locksteward.Lock, first bool) {
	if l.Configured && !e.matched[l.Class] {
		e.matched[l.Class] = true
	}
	id := t.known.id(l.DB, l.Key)
	before, known, clash := t.known.get(id)
	if clash {
		return
	}
	now := t.look(l, id, e.expect(l.Class))
	t.known.put(id, before, known, now)
	t.worst.offer(l, id, now)
	c := e.tallyOf(t, l.Class)
	if now.facts.has(hasClaim) {
		c.claimed = true
	}
	// A value that was not read in full tells no hold from the next.
	same := known && (before.hold == now.hold || l.TokenDigest == "")
	switch {
	case same && before.facts.has(hasClaim) == now.facts.has(hasClaim):
		c.of(now).add(now.marks.since(before.marks))
	case same:
		// Its metadata came or went: the readings cannot be compared.
	case known || t.isNew(l, first):
		c.of(now).acquires++
		c.of(now).add(now.marks)
	}
}

// isNew says whether a lock that was not known before was certainly taken while
// this agent was watching, rather than missed by an incomplete sweep.
func (t *target) isNew(l *locksteward.Lock, first bool) bool {
	if l.Claim != nil && !l.Claim.Acquired.IsZero() {
		return !first && l.Claim.Acquired.After(t.began)
	}
	return t.whole
}

// countEnding counts the end of a hold and what its last reading showed.
func (e *Exporter) countEnding(t *target, ending locksteward.Ending) {
	l := ending.Lock
	if l.Kind == locksteward.KindCandidate {
		return
	}
	c := e.tallyOf(t, l.Class)
	if ending.How == locksteward.EndedExpired {
		c.expired++
	}
	id := t.known.id(l.DB, l.Key)
	if before, known, _ := t.known.get(id); known {
		last := t.look(&l, id, e.expect(l.Class))
		if before.hold == last.hold && before.facts.has(hasClaim) == last.facts.has(hasClaim) {
			c.of(last).add(last.marks.since(before.marks))
		}
		t.known.remove(id.hash, before)
		t.worst.remove(id)
	}
	if held, ok := heldFor(ending); ok {
		if c.hold == nil {
			c.hold = e.newHold(t.name, e.shown(l.Class))
		}
		observeHold(c.hold, held, l.Claim)
	}
}

// heldFor returns how long a hold certainly lasted. Idle times are not hold
// times: any look at the key by anybody resets them.
func heldFor(ending locksteward.Ending) (time.Duration, bool) {
	age, basis, _ := ending.Lock.Age()
	switch basis {
	case locksteward.AgeClaimed:
		if ending.How == locksteward.EndedExpired && ending.Lock.ExpireAt > 0 {
			// The lease ran to its end, which the server gave to the millisecond.
			return max(age, age+time.UnixMilli(ending.Lock.ExpireAt).Sub(ending.Lock.At)), true
		}
		return age, true
	case locksteward.AgeObserved:
		return age, true
	default:
		return 0, false
	}
}

// countLoss counts a lost hold once, however often sweeps see what it left. What
// the first sweep finds was lost before this agent looked.
func (e *Exporter) countLoss(t *target, l locksteward.Loss, first bool) {
	id := lossID{lock: t.known.id(l.DB, l.Key), claim: l.Claim.ID}
	_, counted := t.losses[id]
	t.losses[id] = t.pass
	if !counted && !first && l.How != locksteward.EndedLapsed {
		e.tallyOf(t, l.Class).seen.lost++
	}
}

// forget drops what a complete pass of its master did not see again.
func (t *target) forget(s locksteward.Sweep) {
	complete := s.Complete()
	passed := map[string]bool{}
	for _, m := range s.Masters {
		passed[m.Node] = m.Complete
	}
	seenAll := make([]bool, len(t.known.kinds)) // by kind: its master was seen in full
	for i, k := range t.known.kinds {
		seenAll[i] = complete || passed[k.id.node]
	}
	for hash, l := range t.known.locks {
		if l.pass != uint16(t.pass) && seenAll[l.kind] {
			t.known.remove(hash, l)
		}
	}
	if !complete {
		return
	}
	for id, pass := range t.losses {
		if pass != t.pass {
			delete(t.losses, id)
		}
	}
}

// measure takes the gauges from what was counted of the known locks.
func (t *target) measure() {
	t.gauges = map[string]*lockGauges{}
	for i := range t.known.kinds {
		k := &t.known.kinds[i]
		if k.locks == 0 {
			continue
		}
		g := t.gauges[k.id.class]
		if g == nil {
			g = &lockGauges{libraries: map[string]int{}}
			t.gauges[k.id.class] = g
		}
		g.libraries[k.id.library] += k.locks
		g.withoutTTL += k.withoutTTL
		g.overdue += k.overdue
		g.waiters += k.waiters
		g.hasExpect = g.hasExpect || k.expecting > 0
		g.hasWaiters = g.hasWaiters || k.waiting > 0
		if k.aged > 0 {
			g.hasAge = true
			g.longest = max(g.longest, k.longest)
		}
	}
}

// merge adds the gauges of another class.
func (g *lockGauges) merge(o *lockGauges) {
	for library, n := range o.libraries {
		g.libraries[library] += n
	}
	g.withoutTTL += o.withoutTTL
	g.overdue += o.overdue
	g.waiters += o.waiters
	g.longest = max(g.longest, o.longest)
	g.hasExpect = g.hasExpect || o.hasExpect
	g.hasWaiters = g.hasWaiters || o.hasWaiters
	g.hasAge = g.hasAge || o.hasAge
}
