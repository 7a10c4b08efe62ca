package rules

import (
	"iter"
	"time"

	"github.com/locksteward/locksteward"
)

// subject is what findings are about: a key, or a class (key is empty).
type subject struct {
	target string
	db     int
	class  string // only where key is empty: a reload may move a key to another class
	key    string
}

func subjectOf(f locksteward.Finding) subject {
	s := subject{target: f.Target, db: f.DB, key: f.Key}
	if f.Key == "" {
		s.class = f.Class
	}
	return s
}

// tracked is one finding with what the engine must remember of it.
type tracked struct {
	*kept
	key, id string // of the finding: Key and Subject
	// next is another finding about the same.
	next *tracked
	// loss is the first report of a lost hold; nil for other findings. Later ones know
	// less: once the deadline has passed, a lock deleted before it looks like one that
	// expired.
	loss *lossOrigin
	// confirmed is the number of the last evaluation in which the rule said so.
	confirmed uint64
	// unsaved says that it is among the engine's changes, passedOn that it is not to be,
	// over that it ended.
	unsaved, passedOn, over bool
}

// finding is what the table keeps of it.
func (tr *tracked) finding() locksteward.Finding { return tr.kept.finding(tr.key, tr.id) }

// outline is finding without texts.
func (tr *tracked) outline() locksteward.Finding { return tr.kept.outline(tr.key, tr.id) }

func (tr *tracked) subject() subject { return subjectOf(tr.outline()) }

// lossOrigin is how and when a loss was first found.
type lossOrigin struct {
	how locksteward.EndedHow
	at  time.Time
}

// table holds all pending and firing findings, by the key that they are on: the
// first of them leads to the others. A lock without findings costs one lookup.
type table map[place]map[string]*tracked

// place is a subject but for its key.
type place struct {
	target string
	db     int
	class  string
}

func (s subject) place() place { return place{s.target, s.db, s.class} }

// of are the findings about a subject. The one at hand may be dropped.
func (t table) of(s subject) iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for tr := t[s.place()][s.key]; tr != nil; {
			next := tr.next
			if !yield(tr) {
				return
			}
			tr = next
		}
	}
}

// on are the findings about a target, or about all with "". The one at hand may be
// dropped.
func (t table) on(target string) iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for at, keys := range t {
			if target != "" && at.target != target {
				continue
			}
			for _, tr := range keys {
				for tr != nil {
					next := tr.next
					if !yield(tr) {
						return
					}
					tr = next
				}
			}
		}
	}
}

// beside are the findings about a target that are not about a key.
func (t table) beside(target string) iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for at := range t {
			if at.target != target {
				continue
			}
			for tr := range t.of(subject{target: at.target, db: at.db, class: at.class}) {
				if !yield(tr) {
					return
				}
			}
		}
	}
}

func (t table) find(s subject, rule, id string) *tracked {
	for tr := range t.of(s) {
		if tr.kind.rule == rule && tr.id == id {
			return tr
		}
	}
	return nil
}

// put adds a finding, in the place of one of the same rule and subject.
func (t table) put(s subject, tr *tracked) {
	at := s.place()
	keys := t[at]
	if keys == nil {
		keys = map[string]*tracked{}
		t[at] = keys
	}
	var last *tracked
	for old := keys[s.key]; old != nil; last, old = old, old.next {
		if old.kind.rule == tr.kind.rule && old.id == tr.id {
			tr.next, old.over = old.next, true
			break
		}
	}
	if last == nil {
		keys[s.key] = tr
		return
	}
	last.next = tr
}

func (t table) drop(s subject, tr *tracked) {
	tr.over = true
	at := s.place()
	keys := t[at]
	switch first := keys[s.key]; {
	case first == tr && tr.next != nil:
		keys[s.key] = tr.next
	case first == tr:
		if delete(keys, s.key); len(keys) == 0 {
			delete(t, at)
		}
	default:
		for ; first != nil; first = first.next {
			if first.next == tr {
				first.next = tr.next
			}
		}
	}
}

// advance moves a finding on that its rule says again at now: next is the new
// verdict, wait the rule's `for:`, heldSince the first look at the hold (zero if
// not known). It returns the finding as it is now, and says what people are notified of:
// that old ended, that the new one is so, or both in this order; changed is also a
// wait that began anew.
func (tr *tracked) advance(next locksteward.Finding, now time.Time, wait time.Duration, heldSince time.Time) (is locksteward.Finding, ended, notify, changed bool) {
	old := tr.outline()
	next.Status, next.Since, next.FiredAt = old.Status, old.Since, old.FiredAt
	if old.Status == locksteward.StatusFiring && old.InhibitedBy == "" {
		next.InhibitedBy = "" // people were notified of it, and are of its end
	}

	if next.Status == locksteward.StatusPending {
		// Another hold than the one that began to wait, or a server clock that
		// went back: nothing is known of how long this has been so. (A hold first
		// seen in the future is such a clock too.)
		another := heldSince.After(next.Since) && !heldSince.After(now)
		if another || now.Before(next.Since) {
			next.Since, changed = now, true
		}
		if now.Sub(next.Since) < wait {
			return next, false, false, changed
		}
		next.Status, next.FiredAt = locksteward.StatusFiring, now
		return next, false, true, true
	}
	if old.InhibitedBy != "" && next.InhibitedBy == "" {
		next.FiredAt = now // what explained it is over: it notifies now
		return next, false, true, true
	}
	if next.Severity == old.Severity {
		return next, false, false, false
	}
	if Notifies(old) && !Notifies(next) {
		// People who were notified must be notified of the end, and an info does not notify.
		next.FiredAt = now
		return next, true, true, true
	}
	return next, false, true, true
}

// reported is the first report of a lost hold, if there was one.
func (tr *tracked) reported() lossOrigin {
	if tr.loss == nil {
		return lossOrigin{}
	}
	return *tr.loss
}
