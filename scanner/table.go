package scanner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// maxCandidateNames bounds how many candidates are kept by name; all are
// counted.
const maxCandidateNames = 1000

// Table is the live state of a target: every lock as it was last seen. It is
// safe for concurrent use.
type Table struct {
	target locksteward.Target
	// direct reads one key from the server; it is the scanner's.
	direct func(ctx context.Context, key string) (locksteward.Lock, error)

	mu      sync.RWMutex
	entries map[string]*entry
	shapes  shapes
	// restored are histories from before the restart that no look has
	// confirmed yet.
	restored map[string]HistoryRow
	// forget are keys of which the store has a row of a hold that is over.
	forget map[string]struct{}
	// pending are endings that direct reads found between two sweeps.
	pending []locksteward.Ending
	// What the watch needs, see there.
	deadlines deadlines
	departed  departed
	// flushed are the last flushes that servers told of, by address.
	flushed map[string]*pushedFlush
	// flushLost are the holds that a flush took.
	flushLost map[lossKey]locksteward.Loss
	// strays are the holds that a failover may have taken, for the next sweep.
	strays []stray
	ended  endedHolds

	candidates     []string
	candidateCount int

	byKey, byAge, byTTL ranking
	// ttlKept is whether byTTL is kept, asked when somebody wanted it last.
	ttlKept wanted
	asked   time.Time
}

func newTable(target locksteward.Target) *Table {
	return &Table{
		target: target, entries: map[string]*entry{}, shapes: shapes{}, restored: map[string]HistoryRow{},
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

// Refresh reads one key from the master that owns it, now, puts what it saw
// into the table and returns it. A key that is gone or no lock gives an error
// that wraps locksteward.ErrNotFound; its ending is told by the next sweep. A
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

// remember returns what is known of key.
func (t *Table) remember(key string) memory {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.entries[key]
	if !ok {
		return memory{}
	}
	return e.memory()
}

func (e *entry) memory() memory {
	return memory{known: true, ours: e.kind.dialect == formats.Locksteward, typ: e.kind.typ, last: e}
}

// reading is what a look at one key found.
type reading struct {
	key  string
	lock *look // nil: no lock is there
	at   int64 // server time of the look, µs
	// began is when the look began, or the sweep that it belongs to, by our clock.
	began time.Time
	// merging says that a sweep is merged.
	merging bool
	// keep leaves a hold that is over to the next sweep.
	keep bool
}

// apply takes a look at one key into the table, unless more recent ones are known.
// It returns the lock as it is now known, nil where none is, and the hold that is
// over by this look, nil for none. t.mu is held.
//
// The entry of the same hold stays as it is, since a sweep may have it, and a copy
// takes its place. A merge goes on in the same entry instead: no sweep has it any
// more, and 100,000 copies would be as much again as the table.
func (t *Table) apply(r reading) (now, ended *entry) {
	old, known := t.entries[r.key]
	switch {
	case known && t.older(&r, old):
		return old, nil
	case r.lock == nil:
		if !r.merging {
			t.depart(r.key, r.at)
		}
		if !known || r.keep {
			return nil, nil
		}
		t.drop(r.key)
		return nil, old
	case !known && t.hasDeparted(r.lock):
		return nil, nil
	case !known:
		t.isBack(r.lock)
		now = t.resume(begin(*r.lock))
	case sameHold(&old.look, r.lock):
		return t.goOn(old, r), nil
	default:
		t.forgetRow(old)
		t.dropDue(old)
		if r.lock.idle < 0 && old.idle >= 0 {
			r.lock.idle = 0 // of a known key it is not asked; from here on it adds up
		}
		t.isBack(r.lock)
		now, ended = begin(*r.lock), old
		old.end()
	}
	t.entries[r.key] = now
	t.rank(ended.stood(), now)
	t.setDue(now)
	return now, ended
}

// goOn continues the history of the hold of old. t.mu is held.
func (t *Table) goOn(old *entry, r reading) *entry {
	if r.merging && r.at == old.at {
		// The look was handed on before the sweep ended: what other keys tell is new.
		old.instance, old.waiters = r.lock.instance, r.lock.waiters
		return old
	}
	was, now := old.stood(), old
	if !r.merging {
		r.lock.shareFresh(&old.look)
		now = new(*old)
		t.takePlace(now)
		t.entries[r.key] = now
		old.end()
	}
	now.stepBack(r.at)
	now.seen(*r.lock)
	t.rank(was, now)
	t.setDue(now)
	return now
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
	if row.ExpireAt > 0 && e.expireAt > row.ExpireAt+computedTolerance {
		// Renewed while nobody looked; how often is not known.
		e.renewals++
		e.lastRenewal = e.at
	} else if e.setAnew(row.ExpireAt) {
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

// intern returns the shared shape. t.mu is held.
func (t *Table) intern(s shape) *shape { return t.shapes.of(s) }
