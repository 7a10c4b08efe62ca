package targets

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/lockhistory"
	"github.com/locksteward/locksteward/scanner"
)

// marksKept bounds how many locks of no configured class are remembered because
// there was a finding on them, restoredKept of how many holds it is known after a
// restart that they are gone.
const (
	marksKept    = 10_000
	restoredKept = 50_000
)

// memories is what a target knows of the locks of which history is kept. The
// caller of its methods has the turn.
type memories struct {
	// marked are the locks of no configured class that had a finding.
	marked map[scanner.HistoryKey]bool
	// restored are the holds from before a restart that nobody met yet.
	restored map[scanner.HistoryKey]scanner.HistoryRow
}

// remembered begins with the holds from before a restart, those of configured
// classes first.
func remembered(rows []scanner.HistoryRow, classes *class.Set) memories {
	m := memories{marked: map[scanner.HistoryKey]bool{}, restored: map[scanner.HistoryKey]scanner.HistoryRow{}}
	for _, configured := range []bool{true, false} {
		for _, r := range rows {
			if len(m.restored) < restoredKept && classes.Classify(r.Key).Configured == configured {
				m.restored[scanner.HistoryKey{DB: r.DB, Key: r.Key}] = r
			}
		}
	}
	return m
}

// mark notes that there is or was a finding on a lock of no configured class.
func (m *memories) mark(f locksteward.Finding) {
	if f.Key != "" && (f.Class == "" || f.Class == class.Default) && len(m.marked) < marksKept {
		m.marked[scanner.HistoryKey{DB: f.DB, Key: f.Key}] = true
	}
}

// markAll is mark of what was found before a restart. Nothing is judged yet.
func (m *memories) markAll(findings []locksteward.Finding) {
	for _, f := range findings {
		m.mark(f)
	}
}

// found puts the findings that changed into the history. The caller has the turn.
func (w *Watched) found(transitions []locksteward.Transition) {
	w.deps.Executions.explain(transitions, time.Now())
	var events []lockhistory.Event
	for _, t := range transitions {
		if t.Finding.Key != "" {
			w.memories.mark(t.Finding)
		}
		events = append(events, lockhistory.FindingChanged(t))
	}
	w.deps.History.Enqueue(w.target.Name, events...)
}

// over puts the holds that ended into the history, of locks of configured classes and of
// those that had a finding. prompt says that it was noticed as it happened. It comes after
// found; the caller has the turn.
func (w *Watched) over(endings []locksteward.Ending, prompt bool) {
	var events []lockhistory.Event
	for _, e := range endings {
		at := scanner.HistoryKey{DB: e.Lock.DB, Key: e.Lock.Key}
		if r, ok := w.memories.restored[at]; ok && sameRow(r, e.Lock) {
			delete(w.memories.restored, at)
		}
		if e.Lock.Kind != locksteward.KindCandidate && (e.Lock.Configured || w.memories.marked[at]) {
			events = append(events, lockhistory.HoldEnded(e, prompt))
		}
		// The next hold of that name has findings of its own.
		delete(w.memories.marked, at)
	}
	w.deps.History.Enqueue(w.target.Name, events...)
}

// overUnseen puts the holds into the history that ended while no agent looked, by the first
// complete sweep after a restart. How they ended nobody knows. It comes after over; the
// caller has the turn.
func (w *Watched) overUnseen(s locksteward.Sweep) {
	if len(w.memories.restored) == 0 || !s.Complete() {
		return
	}
	classes := w.deps.Classes()
	var out []lockhistory.Event
	for at, r := range w.memories.restored {
		if l, ok := w.scanner.Table().Get(at.DB, at.Key); ok && sameRow(r, l) {
			continue
		}
		if !classes.Classify(at.Key).Configured && !w.memories.marked[at] {
			continue
		}
		out = append(out, lockhistory.HoldMissed(r, s.At))
	}
	w.memories.restored = nil
	w.deps.History.Enqueue(w.target.Name, out...)
}

// sameRow says whether a lock is the hold of a row of the history.
func sameRow(r scanner.HistoryRow, l locksteward.Lock) bool {
	return r.TokenDigest == l.TokenDigest && r.FirstSeen.Equal(l.History.FirstSeen)
}
