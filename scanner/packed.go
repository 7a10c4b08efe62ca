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

// packEntries sorts entries by key. Of a key that two masters told of, since it
// moved, the later look counts.
func packEntries(table *Table, entries []*entry) packed {
	slices.SortFunc(entries, func(a, b *entry) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		return int(b.looks) - int(a.looks)
	})
	return packed{table, slices.CompactFunc(entries, func(a, b *entry) bool { return a.key == b.key })}
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
