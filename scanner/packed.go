package scanner

import (
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// packed is the locks of one sweep as the table's entries: no copies.
type packed struct {
	table   *Table
	entries []*entry
}

// packEntries sorts entries by key. Holds that are over are left out: where one sweep
// found a hold and its successor, since the key moved, the successor is packed.
func packEntries(table *Table, entries []*entry) packed {
	entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.isOver() && table.newer(e) == nil })
	slices.SortFunc(entries, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
	return packed{table, entries}
}

// Len implements [locksteward.PackedLocks].
func (p packed) Len() int { return len(p.entries) }

// Unpack implements [locksteward.PackedLocks].
func (p packed) Unpack(i int, l *locksteward.Lock) bool {
	e := p.entries[i]
	if e.isOver() {
		if e = p.table.newer(e); e == nil {
			return false
		}
	}
	*l = e.lock(p.table.target)
	return true
}

// newer is what is known now of a hold of which a sweep told; nil if it is over.
func (t *Table) newer(than *entry) *entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e, ok := t.entries[than.key]; ok && e.firstSeen <= than.at && sameHold(&than.look, &e.look) {
		return e
	}
	return nil
}
