package rules

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/locksteward/locksteward"
)

// Transitions are what an evaluation changed, in their order. Each is made when it
// is looked at: a sweep may find 100,000 broken locks.
type Transitions struct{ list []happened }

// happened is a transition as it is kept: what became of a finding, and how it was.
type happened struct {
	tr    *tracked
	kept  *kept
	at    time.Time
	ended bool
	why   locksteward.Message // it ended
	id    string
	seq   uint64
}

func (h happened) transition() locksteward.Transition {
	f := h.kept.finding(h.tr.key, h.tr.id)
	if h.ended {
		f = resolved(f, h.at, h.why)
	}
	return locksteward.Transition{EventID: h.id, Seq: h.seq, At: h.at, Finding: f}
}

func (h happened) compare(o happened) int {
	return h.tr.compare(h.kept, o.tr, o.kept)
}

// compare orders findings for people and for tests alike: it is byIdentity.
func (tr *tracked) compare(is *kept, o *tracked, other *kept) int {
	a, b := &is.kind.trait, &other.kind.trait
	return cmp.Or(
		cmp.Compare(a.target, b.target),
		cmp.Compare(a.db, b.db),
		cmp.Compare(tr.key, o.key),
		cmp.Compare(a.class, b.class),
		cmp.Compare(a.rule, b.rule),
		cmp.Compare(tr.id, o.id),
	)
}

// Len is how many there are.
func (t Transitions) Len() int { return len(t.list) }

// List makes all of them; nil if there are none.
func (t Transitions) List() []locksteward.Transition {
	var out []locksteward.Transition
	if len(t.list) > 0 {
		out = make([]locksteward.Transition, 0, len(t.list))
	}
	for _, h := range t.list {
		out = append(out, h.transition())
	}
	return out
}

// Parts makes them, at most n at once.
func (t Transitions) Parts(n int) iter.Seq[[]locksteward.Transition] {
	return func(yield func([]locksteward.Transition) bool) {
		for part := range slices.Chunk(t.list, n) {
			if !yield(Transitions{part}.List()) {
				return
			}
		}
	}
}

// Findings are findings as they were at one moment; each is made when it is looked at.
type Findings struct{ list []snapped }

// snapped is one of them: its finding may change and end meanwhile.
type snapped struct {
	tr   *tracked
	kept *kept
	over bool
}

// Len is how many there are.
func (f Findings) Len() int { return len(f.list) }

// All makes each of them, in their order. One that ended is resolved.
func (f Findings) All() iter.Seq[locksteward.Finding] {
	return f.each(func(s snapped) locksteward.Finding { return s.kept.finding(s.tr.key, s.tr.id) })
}

// Outlines is All without Summary, Evidence and CounterEvidence, which cost most: for
// the counts.
func (f Findings) Outlines() iter.Seq[locksteward.Finding] {
	return f.each(func(s snapped) locksteward.Finding { return s.kept.outline(s.tr.key, s.tr.id) })
}

func (f Findings) each(make func(snapped) locksteward.Finding) iter.Seq[locksteward.Finding] {
	return func(yield func(locksteward.Finding) bool) {
		for _, s := range f.list {
			one := make(s)
			if s.over {
				one.Status = locksteward.StatusResolved
			}
			if !yield(one) {
				return
			}
		}
	}
}

// FindingsOn are the pending and firing findings about a target, or about all with
// "", in the order of [Engine.Findings].
func (e *Engine) FindingsOn(target string) Findings {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for range e.table.on(target) {
		n++
	}
	out := Findings{slices.Grow([]snapped(nil), n)}
	for tr := range e.table.on(target) {
		out.list = append(out.list, snapped{tr: tr, kept: tr.kept})
	}
	slices.SortFunc(out.list, func(a, b snapped) int {
		return cmp.Or(cmp.Compare(b.kept.kind.severity, a.kept.kind.severity), a.tr.compare(a.kept, b.tr, b.kept))
	})
	return out
}

// Changes are the findings about a target that changed or ended since the last call
// and that are in no transition, each as it is now: for the store
// elsewhere. There are none at the first call.
func (e *Engine) Changes(target string) Findings {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.changes[target]
	e.changes[target] = nil
	out := Findings{make([]snapped, 0, len(list))}
	for _, tr := range list {
		tr.unsaved = false
		// Another may have taken its place.
		if now := e.table.find(tr.subject(), tr.kind.rule, tr.id); !tr.over || now == nil {
			out.list = append(out.list, snapped{tr, tr.kept, tr.over})
		}
	}
	return out
}

// unsaved adds to what [Engine.Changes] gives next. The caller holds e.mu.
func (e *Engine) unsaved(target string, changed []*tracked, transitions []happened) {
	list, wanted := e.changes[target]
	if !wanted {
		return
	}
	for _, h := range transitions {
		h.tr.passedOn = true
	}
	for _, tr := range changed {
		if !tr.unsaved && !tr.passedOn {
			tr.unsaved = true
			list = append(list, tr)
		}
	}
	for _, h := range transitions {
		h.tr.passedOn = false
	}
	e.changes[target] = list
}
