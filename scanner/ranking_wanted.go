package scanner

import (
	"slices"
	"time"
)

// The order by expiry is kept only while somebody looks at it: each renewal gives a
// lock another place in it, and with 100,000 locks it costs as much memory as the
// other two. It is made when it is first asked for and given up when nobody has
// asked for a while.

// unwantedAfter is for how long an order is kept that nobody asks for. Sweeps end it.
const unwantedAfter = 5 * time.Minute

// wanted is whether a ranking is kept. The zero value is one that is not.
type wanted int

const (
	unwanted wanted = iota
	inTheMaking
	kept
)

// want returns the order by expiry; nil while another call makes it. It holds the
// table's mutex for short turns alone.
func (t *Table) want() *ranking {
	t.mu.Lock()
	t.asked = time.Now()
	switch t.ttlKept {
	case kept:
		t.mu.Unlock()
		return &t.byTTL
	case inTheMaking:
		t.mu.Unlock()
		return nil
	}
	t.ttlKept = inTheMaking // what changes from now on is put in by rank
	list := make([]place, 0, len(t.entries))
	for key, e := range t.entries {
		if list = append(list, place{e.expires(), key}); len(list)%chunk == 0 {
			t.mu.Unlock()
			t.mu.Lock()
		}
	}
	t.mu.Unlock()
	slices.SortFunc(list, place.compare)
	t.mu.Lock()
	defer t.mu.Unlock()
	// What was put in meanwhile, some of it sorted in already.
	t.byTTL.fresh = append(t.byTTL.fresh, t.byTTL.list...)
	t.byTTL.list = list
	t.sortIn(&t.byTTL)
	t.ttlKept = kept
	return &t.byTTL
}

// dropUnwanted gives an order up that nobody asks for any more. t.mu is held.
func (t *Table) dropUnwanted(now time.Time) {
	if t.ttlKept == kept && now.Sub(t.asked) > unwantedAfter {
		t.byTTL, t.ttlKept = ranking{by: ByTTL}, unwanted
	}
}
