package rules

import (
	"cmp"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/reload"
)

// Engine runs the rules over sweeps and keeps the findings. It is safe for
// concurrent use; see the package comment for the order that callers keep.
type Engine struct {
	newEventID func() string
	libraries  func(name string) locksteward.LibraryFacts

	mu     sync.Mutex
	policy *policy
	table  table
	kinds  kinds
	// changes are what [Engine.Changes] gives next, by target.
	changes map[string][]*tracked
	passes  uint64 // evaluations so far
	seq     uint64

	// What single reads do not tell.
	waits      waits
	orders     orders
	activities activities
	// situations are what the last sweeps read beyond locks, by target.
	situations map[string]*Situation
	redlocks   redlocks

	marks marks
}

func noLibraries(string) locksteward.LibraryFacts { return locksteward.LibraryFacts{} }

// New returns an engine without findings. A nil classes is the default class
// alone. libraries returns the facts of a lock library by its name in
// Observation.Library; nil knows none: a lock of a library that sets no TTL by
// design is then as critical as any other. The error joins all problems of cfg,
// each beginning with its path ("rules[1].rule: …").
func New(cfg Config, classes *class.Set, libraries func(name string) locksteward.LibraryFacts) (*Engine, error) {
	if libraries == nil {
		libraries = noLibraries
	}
	e := &Engine{newEventID: rand.Text, libraries: libraries, table: table{}, kinds: kinds{}, changes: map[string][]*tracked{}, waits: newWaits(), orders: orders{}, activities: activities{}, situations: map[string]*Situation{}}
	if err := e.Reload(cfg, classes); err != nil {
		return nil, err
	}
	return e, nil
}

// Reload replaces the configuration and keeps the findings; the next evaluation
// applies the new policy to them, and a rule that was switched off resolves
// there. After an error the engine is as it was.
func (e *Engine) Reload(cfg Config, classes *class.Set) error {
	prepared, err := e.Prepare(cfg, classes)
	if err == nil {
		prepared.Commit()
	}
	return err
}

// Prepare checks another configuration; its Commit is [Engine.Reload].
func (e *Engine) Prepare(cfg Config, classes *class.Set) (reload.Prepared, error) {
	if classes == nil {
		classes = &class.Set{}
	}
	if err := errors.Join(cfg.problems(classes)...); err != nil {
		return nil, err
	}
	next := newPolicy(slices.Clone(cfg), classes)
	return reload.Funcs{OnCommit: func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.policy = next
	}}, nil
}

// Evaluate judges one sweep and returns what changed, in the order of (target,
// db, key, class, rule, subject).
func (e *Engine) Evaluate(s locksteward.Sweep) []locksteward.Transition {
	return e.EvaluateSweep(s).List()
}

// EvaluateSweep is [Engine.Evaluate], whose transitions are made when they are looked
// at.
func (e *Engine) EvaluateSweep(s locksteward.Sweep) Transitions {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.begin(s.Target, s.At)
	p.sweep(s, func() bool { return true })
	return p.finish()
}

// EvaluateDirect judges direct reads of single keys, as scanner's Recheck returns
// them: locks, those who wait for them, and endings. Nothing is concluded about
// other keys, losses or classes. A lock or ending without a time of its own was
// read at u.At, server time.
func (e *Engine) EvaluateDirect(u locksteward.Update) []locksteward.Transition {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.update(u).finish().List()
}

// update judges what an update says of its locks.
func (e *Engine) update(u locksteward.Update) *pass {
	p := e.begin(u.Target, u.At)
	r := readOf(u)
	p.endings(u.Endings)
	p.waits(r)
	p.locks(r.locks, func() bool { return true })
	return p
}

// RemoveTarget resolves all findings of a target that is watched no longer, at
// at.
func (e *Engine) RemoveTarget(target string, at time.Time) []locksteward.Transition {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.begin(target, at)
	p.over = targetRemoved
	p.resolveUnseen()
	e.waits.remove(target)
	delete(e.orders, target)
	delete(e.activities, target)
	e.unlearn(target)
	transitions := p.finish().List()
	delete(e.changes, target)
	return transitions
}

// Due returns the locks of a target that are worth a second look before the next
// sweep, in the order of (DB, Key): those on which [TTLNone] is pending, from
// [RecheckAfter] on, and those of a [WaitCycle] that is not proven yet.
func (e *Engine) Due(target string) []LockKey {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []LockKey
	for tr := range e.table.on(target) {
		if tr.kind.rule == TTLNone && tr.kind.status == locksteward.StatusPending {
			out = append(out, LockKey{DB: tr.kind.db, Key: tr.key})
		}
	}
	out = append(out, e.waits.due(target)...)
	slices.SortFunc(out, func(a, b LockKey) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key)) })
	return slices.Compact(out)
}

// LockKey names a lock of a target.
type LockKey struct {
	DB  int
	Key string // exact bytes
}

// Findings returns the pending and firing findings: most severe first, then by
// target, db, key, class, rule and subject.
func (e *Engine) Findings() []locksteward.Finding {
	all := e.FindingsOn("")
	out := slices.Grow([]locksteward.Finding(nil), all.Len())
	return slices.AppendSeq(out, all.All())
}

// FindingsFor returns the pending and firing findings on one key, most severe
// first.
func (e *Engine) FindingsFor(target string, db int, key string) []locksteward.Finding {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []locksteward.Finding
	for tr := range e.table.of(subject{target: target, db: db, key: key}) {
		out = append(out, tr.finding())
	}
	slices.SortFunc(out, bySeverity)
	return out
}

// Restore puts back findings that [Engine.Findings] gave before a restart,
// without transitions: people were notified of them. Resolved ones are ignored, and
// one that is there already is replaced.
func (e *Engine) Restore(findings []locksteward.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range findings {
		if f.Status != locksteward.StatusPending && f.Status != locksteward.StatusFiring {
			continue
		}
		scope := scopeOf(f)
		tr := &tracked{kept: e.kinds.keep(f, scope), key: f.Key, id: f.Subject}
		if scope == ScopeLoss {
			origin := originOf(f)
			tr.loss = &origin
		}
		e.table.put(subjectOf(f), tr)
		e.marks.note(e.table, []*tracked{tr})
		if scope == ScopeCycle {
			e.waits.findings[f.Subject] = subjectOf(f)
		}
	}
}

// scopeOf is the scope of a stored finding, from its rule or, for a rule that
// this version does not know, from its shape.
func scopeOf(f locksteward.Finding) Scope {
	if d, ok := Lookup(f.Rule); ok {
		return d.Scope
	}
	switch {
	case f.Key == "":
		return ScopeClass
	case f.Subject != "":
		return ScopeLoss
	default:
		return ScopeLock
	}
}

// byIdentity orders findings for people and for tests alike.
func byIdentity(a, b locksteward.Finding) int {
	return cmp.Or(
		cmp.Compare(a.Target, b.Target),
		cmp.Compare(a.DB, b.DB),
		cmp.Compare(a.Key, b.Key),
		cmp.Compare(a.Class, b.Class),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Subject, b.Subject),
	)
}

func bySeverity(a, b locksteward.Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), byIdentity(a, b))
}
