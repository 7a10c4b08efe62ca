package scanner

import (
	"cmp"
	"slices"
	"strings"
)

// ranking keeps the locks of a table in one order, so that a page of all locks
// costs what is on it; that by expiry is kept while somebody wants it, see
// [Table.want]. It is guarded by the table's mutex. New places wait in fresh
// until somebody looks or there are many of them; those of locks that are gone, or
// stand elsewhere now, are passed over until there are many of them too: a change of
// the table costs next to nothing, and one of 100,000 locks costs 24 bytes.
type ranking struct {
	by    Order
	list  []place
	fresh []place
	stale int
}

// place is where a lock was put. The table tells whether it still belongs there.
type place struct {
	value int64
	key   string
}

const (
	// sortInAt is how many fresh places are sorted in at once: a pause of a few
	// milliseconds at most.
	sortInAt = 4096
	// staleShare is the part of a list that may be stale: one in four.
	staleShare = 4
)

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(a.value, b.value), strings.Compare(a.key, b.key))
}

// stood is where an entry stood in the orders.
type position struct{ since, expires int64 }

// stood is where e stands; nil for no entry.
func (e *entry) position() *position {
	if e == nil {
		return nil
	}
	return &position{e.heldSince(), e.expires()}
}

// rank takes a lock into the orders that was not there (was is nil) or may have stood
// elsewhere. t.mu is held.
func (t *Table) rank(was *position, now *entry) {
	if was == nil {
		t.put(&t.byKey, now)
	}
	if was == nil || was.since != now.heldSince() {
		if was != nil {
			t.byAge.stale++
		}
		t.put(&t.byAge, now)
	}
	if t.ttlKept == unwanted {
		return
	}
	if was == nil || was.expires != now.expires() {
		if was != nil {
			t.byTTL.stale++
		}
		t.put(&t.byTTL, now)
	}
}

func (t *Table) put(r *ranking, e *entry) {
	r.fresh = append(r.fresh, place{e.value(r.by), e.key})
	if len(r.fresh) >= sortInAt {
		t.sortIn(r)
	}
}

// holds says that a lock is still there and still in this place.
func (t *Table) holds(r *ranking, p place) bool {
	e, ok := t.entries[p.key]
	return ok && e.value(r.by) == p.value
}

// settle sorts the fresh places in.
func (t *Table) sortIn(r *ranking) {
	if r.stale > sortInAt && r.stale > len(r.list)/staleShare {
		r.list = slices.DeleteFunc(r.list, func(p place) bool { return !t.holds(r, p) })
		r.stale = 0
	}
	slices.SortFunc(r.fresh, place.compare)
	from := len(r.list)
	r.list = append(r.list, r.fresh...)
	// From the end on, so that nothing is moved twice.
	to := len(r.list)
	for i := len(r.fresh) - 1; i >= 0; i-- {
		at, _ := slices.BinarySearchFunc(r.list[:from], r.fresh[i], place.compare)
		moved := from - at
		copy(r.list[to-moved:to], r.list[at:from])
		to -= moved + 1
		r.list[to] = r.fresh[i]
		from = at
	}
	clear(r.fresh)
	r.fresh = r.fresh[:0]
}

// ranked returns up to limit places behind a position, and whether there are more.
func (t *Table) ranked(r *ranking, after *Position, limit int) (found []place, more bool) {
	t.sortIn(r)
	from := 0
	if after != nil {
		from, _ = slices.BinarySearchFunc(r.list, *after, func(p place, at Position) int {
			if (Position{Value: p.value, Key: p.key}).Compare(at) <= 0 {
				return -1
			}
			return 1
		})
	}
	for _, p := range r.list[from:] {
		// A lock that moved away and back is there twice, side by side.
		if len(found) > 0 && found[len(found)-1] == p || !t.holds(r, p) {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, p)
	}
	return found, false
}
