package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// processKept is for how long a process that was not seen is remembered: its
// counts go on when it is back.
const processKept = 10 * time.Minute

// Recorder collects the holds of one target.
type Recorder struct {
	target string
	// each is called with every hold; nil is nobody.
	each func(Hold)

	mu        sync.Mutex
	rows      map[rowID]*Row
	unsaved   map[rowID]bool
	passes    passes
	covered   covered
	processes map[string]process
	began     time.Time // server time of the first look
	ended     time.Time // server time of the last look
}

type rowID struct {
	class string
	slot  time.Time
}

// process is what a process reported last.
type process struct {
	seen   time.Time // server time
	counts map[string]locksteward.Counts
}

// NewRecorder returns a recorder without rows. each is called with every hold as
// it is counted, under the recorder's lock; nil is nobody.
func NewRecorder(target string, each func(Hold)) *Recorder {
	return &Recorder{
		target: target, each: each,
		rows: map[rowID]*Row{}, unsaved: map[rowID]bool{}, processes: map[string]process{},
		covered: covered{from: map[string]time.Time{}},
	}
}

// Restore continues rows from before a restart.
func (r *Recorder) Restore(rows []Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		id := rowID{row.Class, row.Slot.UTC()}
		if r.rows[id] == nil {
			r.rows[id] = new(row.Clone())
		}
	}
}

// AddSweep counts what a sweep established. Each ending must be in one sweep or update alone.
func (r *Recorder) AddSweep(s locksteward.Sweep) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(s.At.Add(-s.Duration), s.At, s.Endings, s.Losses)
	if len(s.Masters) == 0 {
		return
	}
	r.trackProcesses(s)
	r.wait(s)
	r.passes.add(s)
	r.covered.offset = s.At.Sub(s.Started.Add(s.Duration))
}

// AddUpdate is [Recorder.AddSweep] for an update.
func (r *Recorder) AddUpdate(u locksteward.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(u.At.Add(-u.Duration), u.At, u.Endings, u.Losses)
}

// count counts holds that are over, read between two moments of the server's clock. r.mu
// is held.
func (r *Recorder) count(began, ended time.Time, endings []locksteward.Ending, losses []locksteward.Loss) {
	if r.began.IsZero() {
		r.began = began
	}
	if ended.After(r.ended) {
		r.ended = ended
	}
	deadlines := expiries(losses)
	for _, e := range endings {
		if e.Lock.Kind == locksteward.KindCandidate {
			continue
		}
		var deadline time.Time
		if c := e.Lock.Claim; c != nil {
			deadline = deadlines[lossID{e.Lock.DB, e.Lock.Key, c.ID}]
		}
		h := Measure(e, r.since(cmp.Or(e.Lock.Class, class.Default)), deadline)
		r.row(h.Class, h.EndedAt).Add(h)
		if r.each != nil {
			r.each(h)
		}
	}
}

// Watched notes for which classes changes are noticed as they happen, and for how
// long in all they were not; it is to be called every second or so.
func (r *Recorder) Watched(now time.Time, classes map[string]bool, blind time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.covered.note(now, classes, blind)
}

// since returns what [Measure] asks for. r.mu is held.
func (r *Recorder) since(name string) func(time.Time) (time.Time, bool) {
	return func(firstSeen time.Time) (time.Time, bool) {
		began, ok := r.passes.since(firstSeen)
		if covered, sooner := r.covered.since(name, firstSeen); sooner && (!ok || covered.After(began)) {
			return covered, true
		}
		return began, ok
	}
}

type lossID struct {
	db    int
	key   string
	claim string
}

// expiries are the deadlines of the holds that metadata proves to have run out.
func expiries(losses []locksteward.Loss) map[lossID]time.Time {
	out := map[lossID]time.Time{}
	for _, l := range losses {
		if l.How == locksteward.EndedExpired && !l.Deadline.IsZero() {
			out[lossID{l.DB, l.Key, l.Claim.ID}] = l.Deadline
		}
	}
	return out
}

// row returns the row that something at a time counts into. r.mu is held.
func (r *Recorder) row(name string, at time.Time) *Row {
	id := rowID{cmp.Or(name, class.Default), SlotOf(at)}
	row := r.rows[id]
	if row == nil {
		row = &Row{Target: r.target, Class: id.class, Slot: id.slot}
		r.rows[id] = row
	}
	r.unsaved[id] = true
	return row
}

// trackProcesses counts by how much the counts of each process grew. What it had done
// before anybody looked is not counted, unless it began since.
func (r *Recorder) trackProcesses(s locksteward.Sweep) {
	for _, p := range s.Instances {
		if p.Counts == nil {
			continue
		}
		last, known := r.processes[p.ID]
		for name, now := range p.Counts {
			if !known && !p.Started.After(r.began) {
				continue
			}
			before := last.counts[name]
			acquired, contended, failed := now.Acquired-before.Acquired, now.Contended-before.Contended, now.Failed-before.Failed
			if acquired <= 0 && contended <= 0 && failed <= 0 {
				continue
			}
			row := r.row(name, s.At)
			row.Reported = true
			row.Acquired += max(0, acquired)
			row.Contended += max(0, contended)
			row.Failed += max(0, failed)
		}
		r.processes[p.ID] = process{seen: s.At, counts: p.Counts}
	}
	maps.DeleteFunc(r.processes, func(_ string, p process) bool { return s.At.Sub(p.seen) > processKept })
}

// wait notes how many waited at once, and for how long.
func (r *Recorder) wait(s locksteward.Sweep) {
	waiters := map[string]int64{}
	for l := range s.AllLocks() {
		if l.Waiters >= 0 { // else its library does not tell
			waiters[cmp.Or(l.Class, class.Default)] += int64(l.Waiters)
		}
	}
	for name, n := range waiters {
		if row := r.rows[rowID{name, SlotOf(s.At)}]; row == nil || !row.WaitersKnown || row.MaxWaiters < n {
			row = r.row(name, s.At)
			row.WaitersKnown, row.MaxWaiters = true, max(row.MaxWaiters, n)
		}
	}
	for _, w := range s.Waiters {
		if waited := s.At.Sub(w.Since); waited > 0 {
			row := r.row(w.Class, s.At)
			row.WaitersKnown, row.LongestWait = true, max(row.LongestWait, waited)
		}
	}
}

// Observed returns from when until when the target was looked at, server time;
// zero before the first look.
func (r *Recorder) Observed() (from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.began, r.ended
}

// Rows returns copies of the rows that are kept, in the order of slot and class.
func (r *Recorder) Rows() []Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies(func(rowID) bool { return true })
}

// Unsaved returns copies of the rows that changed since they were saved last.
func (r *Recorder) Unsaved() []Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copies(func(id rowID) bool { return r.unsaved[id] })
}

// Saved notes that rows are in the store as they were given by Unsaved, and
// forgets those that nothing is counted into any more.
func (r *Recorder) Saved(rows []Row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		id := rowID{row.Class, row.Slot}
		now := r.rows[id]
		if now == nil {
			continue
		}
		if now.Low.Count() == row.Low.Count() && now.Acquired+now.Contended+now.Failed == row.Acquired+row.Contended+row.Failed &&
			now.WaitersKnown == row.WaitersKnown && now.MaxWaiters == row.MaxWaiters && now.LongestWait == row.LongestWait {
			delete(r.unsaved, id)
		}
	}
	// The slot before is kept for a while: a read may have begun in it.
	oldest := SlotOf(r.ended).Add(-SlotLength)
	maps.DeleteFunc(r.rows, func(id rowID, _ *Row) bool { return id.slot.Before(oldest) && !r.unsaved[id] })
}

// copies returns copies of the chosen rows. r.mu is held.
func (r *Recorder) copies(choose func(rowID) bool) []Row {
	var out []Row
	for id, row := range r.rows {
		if choose(id) {
			out = append(out, row.Clone())
		}
	}
	slices.SortFunc(out, func(a, b Row) int { return cmp.Or(a.Slot.Compare(b.Slot), strings.Compare(a.Class, b.Class)) })
	return out
}
