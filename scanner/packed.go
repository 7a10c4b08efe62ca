package scanner

import (
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
)

// packed is the locks of one sweep as the table's entries: no copies.
type packed struct {
	target  locksteward.Target
	entries []*entry
}

// packEntries sorts entries by key. Of a key that two masters told of, since it
// moved, the later look counts.
func packEntries(target locksteward.Target, entries []*entry) packed {
	slices.SortFunc(entries, func(a, b *entry) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		return int(b.looks) - int(a.looks)
	})
	return packed{target, slices.CompactFunc(entries, func(a, b *entry) bool { return a.key == b.key })}
}

// Len implements [locksteward.PackedLocks].
func (p packed) Len() int { return len(p.entries) }

// Unpack implements [locksteward.PackedLocks].
func (p packed) Unpack(i int, l *locksteward.Lock) { *l = p.entries[i].lock(p.target) }
