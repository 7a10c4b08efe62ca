package scanner

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
)

// maxCandidateNames bounds how many candidates are kept by name; all are
// counted.
const maxCandidateNames = 1000

// Table is the live state of a target: every known lock with its last reading and its
// history. It is safe for concurrent use.
type Table struct {
	target locksteward.Target
	// direct reads one key from the server; it is the scanner's.
	direct func(ctx context.Context, key string) (locksteward.Lock, error)
	// tolerance is [source.Traits.ExpiryTolerance], in ms.
	tolerance int64

	mu       sync.RWMutex
	entries  map[string]*entry
	traitSet traitSet
	// restored are histories loaded after a restart that no reading has confirmed yet.
	restored map[string]HistoryRow
	// forget are the keys of stored rows whose holds have ended.
	forget map[string]struct{}
	// pending are endings found by Refresh, for the next sweep to report.
	pending []locksteward.Ending
	// What the watch needs, see there.
	deadlines  deadlines
	tombstones tombstones
	// flushed is the last flush that each server pushed, by address.
	flushed map[string]*pushedFlush
	// flushLost are the holds that a flush took.
	flushLost map[lossKey]locksteward.Loss
	// failoverSuspects are holds that a failover may have lost, for the next sweep to judge.
	failoverSuspects []failoverSuspect
	ended            endedHolds

	candidates     []string
	candidateCount int

	byKey, byAge, byTTL ranking
	// ttlKept is whether byTTL is kept, asked when somebody wanted it last.
	ttlKept wanted
	asked   time.Time
}

func newTable(target locksteward.Target) *Table {
	return &Table{
		target: target, entries: map[string]*entry{}, traitSet: traitSet{}, restored: map[string]HistoryRow{},
		forget: map[string]struct{}{}, flushed: map[string]*pushedFlush{}, flushLost: map[lossKey]locksteward.Loss{},
		deadlines: newDeadlines(), byKey: ranking{by: ByKey}, byAge: ranking{by: ByAge}, byTTL: ranking{by: ByTTL},
	}
}

// Locks returns all locks, sorted by key.
func (t *Table) Locks() []locksteward.Lock {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]locksteward.Lock, 0, len(t.entries))
	for _, e := range t.entries {
		out = append(out, e.lock(t.target))
	}
	sortLocks(out)
	return out
}

// Get returns the lock of that database and key as it was last seen.
func (t *Table) Get(db int, key string) (locksteward.Lock, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.entries[key]
	if !ok || db != t.target.DB {
		return locksteward.Lock{}, false
	}
	return e.lock(t.target), true
}

// Len returns how many locks there are.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.entries)
}

// Candidates returns the names of the first 1,000 candidates of the last sweep
// and how many there were.
func (t *Table) Candidates() (names []string, total int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.candidates), t.candidateCount
}

// addPending leaves endings that a read of a single lock found to the next sweep.
func (t *Table) addPending(endings []locksteward.Ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, endings...)
}

// takePending returns the endings that reads of single locks left to the next sweep.
func (t *Table) takePending() []locksteward.Ending {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := t.pending
	t.pending = nil
	return pending
}

// setCandidates keeps the candidates of a sweep: the names of some, and how many there are.
func (t *Table) setCandidates(names []string, total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.candidates, t.candidateCount = names[:min(len(names), maxCandidateNames)], total
}

// Refresh reads one key from the master that owns it, now, puts what it saw
// into the table and returns it. A key that is gone or no lock gives an error
// that wraps locksteward.ErrNotFound; the next sweep reports its ending. A
// candidate is returned, with its Kind, but not kept.
func (t *Table) Refresh(ctx context.Context, key string) (locksteward.Lock, error) {
	return t.direct(ctx, key)
}

func sortLocks(locks []locksteward.Lock) {
	slices.SortFunc(locks, func(a, b locksteward.Lock) int {
		if a.DB != b.DB {
			return a.DB - b.DB
		}
		return strings.Compare(a.Key, b.Key)
	})
}

// resume continues a history from before the restart, if e is the same hold.
func (t *Table) resume(e *entry) *entry {
	row, ok := t.restored[e.key]
	if !ok {
		return e
	}
	delete(t.restored, e.key)
	sameClaim := row.ClaimID == "" || e.claim == nil || row.ClaimID == e.claim.ID
	if e.digest == "" || row.TokenDigest != e.digest || !sameClaim || micros(row.FirstSeen) > e.at {
		t.forget[row.Key] = struct{}{}
		return e
	}
	e.firstSeen = micros(row.FirstSeen)
	e.renewals = int32(row.Renewals)
	e.lastRenewal = micros(row.LastRenewal)
	e.renewEvery = row.RenewEvery
	e.savedAt, e.savedRenewals = micros(row.LastSeen), e.renewals
	e.looks++
	e.hadTTL = e.hadTTL || row.ExpireAt > 0
	if row.ExpireAt > 0 && e.expireAt > row.ExpireAt+t.tolerance {
		// Renewed while the agent was down; how often is unknown.
		e.renewals++
		e.lastRenewal = e.at
	} else if e.setAnew(row.ExpireAt, t.tolerance) {
		e.lastRenewal = e.at
	}
	return e
}

// drop removes a lock. t.mu is held.
func (t *Table) drop(key string) {
	if e, ok := t.entries[key]; ok {
		t.forgetRow(e)
		t.dropDue(e)
		t.byKey.stale++
		t.byAge.stale++
		t.byTTL.stale++
		delete(t.entries, key)
		e.end()
	}
}

// forgetRow notes that the store's row of e is of no use any more. t.mu is held.
func (t *Table) forgetRow(e *entry) {
	if e.savedAt != 0 {
		t.forget[e.key] = struct{}{}
	}
}

// dropRestored gives up histories from before the restart whose locks a
// complete pass did not meet. t.mu is held.
func (t *Table) dropRestored(owns func(key string) bool) {
	for key := range t.restored {
		if owns(key) {
			delete(t.restored, key)
			t.forget[key] = struct{}{}
		}
	}
}

// visit goes through the locks of entries, each as it is known now; holds that are over
// by now are left out. What it yields is valid until the next one.
func (t *Table) visit(entries []*entry) iter.Seq[*locksteward.Lock] {
	return func(yield func(*locksteward.Lock) bool) {
		var l locksteward.Lock
		for _, e := range entries {
			if e.isOver() {
				if e = t.newer(e); e == nil {
					continue
				}
			}
			l = e.lock(t.target)
			if !yield(&l) {
				return
			}
		}
	}
}

// newer returns what is known now of the hold of an entry that the table has replaced;
// nil if the hold is over.
func (t *Table) newer(than *entry) *entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e, ok := t.entries[than.key]; ok && e.firstSeen <= than.at && sameHold(&than.lockState, &e.lockState) {
		return e
	}
	return nil
}

// sortEntries sorts entries by key. Holds that are over are left out: where one sweep
// found a hold and its successor, since the key moved, the successor remains.
func (t *Table) sortEntries(entries []*entry) []*entry {
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.isOver() && t.newer(e) == nil })
	slices.SortFunc(entries, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
	return entries
}
