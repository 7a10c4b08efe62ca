package scanner

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// Histories younger than this are not worth a row: most locks are gone sooner.
const (
	saveAfter = 5 * time.Second
	saveEvery = 5 * time.Minute // LastSeen alone
	saveBatch = 500
)

// Restore takes histories from before a restart. A hold that a sweep finds
// unchanged goes on with its history. Rows of other targets are ignored.
func (s *Scanner) Restore(rows []HistoryRow) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	for _, row := range rows {
		if row.Target == s.target.Name && row.DB == s.target.DB {
			s.table.restored[row.Key] = row
			// A person who looked before the first sweep began its history anew.
			if e, ok := s.table.entries[row.Key]; ok {
				s.table.resume(e)
			}
		}
	}
}

func (s *Scanner) loadHistory(ctx context.Context) {
	if s.history == nil {
		return
	}
	rows, err := s.history.LoadHistory(ctx, s.target.Name)
	if err != nil {
		s.log.Error("histories are lost: ages begin anew", zap.Error(err))
		return
	}
	s.Restore(rows)
}

// saveHistory writes what the sweep changed in batches. What fails is written
// with the next sweep.
func (s *Scanner) saveHistory(ctx context.Context) {
	if s.history == nil {
		return
	}
	changed, gone := s.table.unsaved()
	// Rows that are over go first: the key may have a new row among the others.
	for batch := range slices.Chunk(gone, saveBatch) {
		if !s.saveBatch(ctx, nil, s.table.stillGone(batch)) {
			return
		}
	}
	for batch := range slices.Chunk(changed, saveBatch) {
		if !s.saveBatch(ctx, s.table.rows(batch), nil) {
			return
		}
	}
}

func (s *Scanner) saveBatch(ctx context.Context, upserts []HistoryRow, gone []HistoryKey) bool {
	if len(upserts)+len(gone) == 0 {
		return true
	}
	if err := s.history.SaveHistory(ctx, s.target.Name, upserts, gone); err != nil {
		s.log.Error("histories are not saved: they are tried again after the next sweep", zap.Error(err))
		return false
	}
	s.table.saved(upserts, gone)
	return true
}

// HistoryRows returns the history of every lock that is known, sorted by key.
func (s *Scanner) HistoryRows() []HistoryRow {
	t := s.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	rows := make([]HistoryRow, 0, len(t.entries))
	for _, e := range t.entries {
		rows = append(rows, t.row(e))
	}
	slices.SortFunc(rows, func(a, b HistoryRow) int { return strings.Compare(a.Key, b.Key) })
	return rows
}

// row returns the row of e. t.mu is held.
func (t *Table) row(e *entry) HistoryRow {
	r := HistoryRow{
		Target: t.target.Name, DB: t.target.DB, Key: e.key, TokenDigest: e.digest,
		FirstSeen: fromMicros(e.firstSeen), LastSeen: fromMicros(e.lastSeen),
		Renewals: int(e.renewals), LastRenewal: fromMicros(e.lastRenewal), RenewEvery: e.renewEvery,
		ExpireAt: e.expireAt,
	}
	if e.claim != nil {
		r.ClaimID = e.claim.ID
	}
	return r
}

// unsaved returns what the store does not have: the keys of new and changed rows of
// holds that are old enough, and rows of holds that are over.
func (t *Table) unsaved() (changed []string, gone []HistoryKey) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key := range t.forget {
		gone = append(gone, HistoryKey{DB: t.target.DB, Key: key})
	}
	for key, e := range t.entries {
		if e.unsaved() {
			changed = append(changed, key)
		}
	}
	return changed, gone
}

// unsaved says that the store should have the hold and has not, or not as it is.
func (e *entry) unsaved() bool {
	held := time.Duration(e.lastSeen-e.firstSeen) * time.Microsecond
	stale := time.Duration(e.lastSeen-e.savedAt)*time.Microsecond >= saveEvery
	changed := e.renewals != e.savedRenewals || e.lastRenewal > e.savedAt
	return held >= saveAfter && (e.savedAt == 0 || changed || stale)
}

// rows are the rows of those keys that are to be saved, as they are now: the watch
// goes on while 100,000 are written.
func (t *Table) rows(keys []string) []HistoryRow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]HistoryRow, 0, len(keys))
	for _, key := range keys {
		if e, ok := t.entries[key]; ok && e.unsaved() {
			out = append(out, t.row(e))
		}
	}
	return out
}

// stillGone are those of the rows that are to be taken out of the store still.
func (t *Table) stillGone(rows []HistoryKey) []HistoryKey {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(rows), func(k HistoryKey) bool {
		_, forget := t.forget[k.Key]
		return !forget
	})
}

// saved notes what the store has now.
func (t *Table) saved(upserts []HistoryRow, gone []HistoryKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range gone {
		delete(t.forget, k.Key)
	}
	for i := range upserts {
		row := &upserts[i]
		if e, ok := t.entries[row.Key]; ok && e.digest == row.TokenDigest && e.firstSeen <= micros(row.LastSeen) {
			e.savedAt, e.savedRenewals = micros(row.LastSeen), int32(row.Renewals)
		} else {
			t.forget[row.Key] = struct{}{} // it ended while it was written
		}
	}
}
