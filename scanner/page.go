package scanner

import (
	"cmp"
	"math"
	"strings"

	"github.com/locksteward/locksteward"
)

// Order is what a [Page] is sorted by.
type Order int

// The orders. Within each, equals come by their keys.
const (
	ByKey Order = iota
	// ByAge has the longest held first. A lock whose age is not known is held since
	// it was first seen.
	ByAge
	// ByTTL has the next to expire first and what never expires last.
	ByTTL
)

// Position is a place in an order. It holds while locks come and go, since Value
// is no age but the moment that the hold began (µs since 1970), no TTL but the
// moment of expiry (ms); 0 by key.
type Position struct {
	Value int64
	Key   string
	// Behind is the place behind all locks of the value, whatever their keys.
	Behind bool
}

// Compare is negative for what comes before o.
func (p Position) Compare(o Position) int {
	if c := cmp.Compare(p.Value, o.Value); c != 0 || p.Behind && o.Behind {
		return c
	}
	switch {
	case p.Behind:
		return 1
	case o.Behind:
		return -1
	default:
		return strings.Compare(p.Key, o.Key)
	}
}

// Query selects and orders locks; zero fields select all.
type Query struct {
	Class, Library string
	NoTTL          bool
	// Waited selects locks that are known to be waited for.
	Waited bool
	// Holder is part of the app, host, session or instance of the holder, in any
	// case.
	Holder string
	// Keep is asked last, with the exact bytes of the key; nil keeps all. It must
	// not call the table.
	Keep  func(key string) bool
	Order Order
	// After leaves out what is not behind it; nil leaves out nothing.
	After *Position
	Limit int // at least 1
}

// Page is part of a list of locks.
type Page struct {
	Locks []locksteward.Lock
	// At has the position of each of the locks.
	At []Position
	// Total counts what the query selects, on all pages.
	Total int
	// More says that there is another page.
	More bool
}

// chunk is how many locks are looked at under one hold of the table's mutex: few
// enough that no look at Redis waits for a list.
const chunk = 2048

// Page returns part of a list of the locks. All locks come from an order that is
// kept; with a filter it takes a look at each lock, in short turns, so that it is
// not one moment of the whole table, but each lock that is there all the time is in
// it.
func (t *Table) Page(q Query) Page {
	if r := t.rankingFor(q); r != nil {
		return t.pageOf(r, q)
	}
	holder := strings.ToLower(q.Holder)
	best := top{limit: q.Limit + 1}
	page := Page{}
	inspected := 0
	t.mu.RLock()
	for key, e := range t.entries {
		if inspected++; inspected%chunk == 0 {
			t.mu.RUnlock()
			t.mu.RLock()
		}
		if q.Class != "" && e.traits.class != q.Class || q.Library != "" && e.traits.library != q.Library ||
			q.NoTTL && (e.ttl != locksteward.NoExpiry || e.traits.lifetime == locksteward.LifetimeSession) || q.Waited && e.waiters <= 0 ||
			holder != "" && !e.heldBy(holder) || q.Keep != nil && !q.Keep(key) {
			continue
		}
		page.Total++
		p := Position{Key: key}
		if q.Order != ByKey {
			p.Value = e.value(q.Order)
		}
		if q.After == nil || p.Compare(*q.After) > 0 {
			best.add(ranked{p, e})
		}
	}
	defer t.mu.RUnlock()
	found := best.sorted()
	if len(found) > q.Limit {
		page.More, found = true, found[:q.Limit]
	}
	for _, r := range found {
		page.Locks = append(page.Locks, r.entry.lock(t.target))
		page.At = append(page.At, r.Position)
	}
	return page
}

// rankingFor is the order that is kept for what a query asks for; nil for none. It
// takes t.mu.
func (t *Table) rankingFor(q Query) *ranking {
	if q.Class != "" || q.Library != "" || q.NoTTL || q.Waited || q.Holder != "" || q.Keep != nil {
		return nil
	}
	switch q.Order {
	case ByKey:
		return &t.byKey
	case ByAge:
		return &t.byAge
	default:
		return t.want()
	}
}

func (t *Table) pageOf(r *ranking, q Query) Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, more := t.ranked(r, q.After, q.Limit)
	page := Page{
		Total: len(t.entries), More: more, Locks: make([]locksteward.Lock, 0, len(found)), At: make([]Position, 0, len(found)),
	}
	for _, p := range found {
		page.Locks = append(page.Locks, t.entries[p.key].lock(t.target))
		page.At = append(page.At, Position{Value: p.value, Key: p.key})
	}
	return page
}

// heldBy says whether part, in lower case, names the holder.
func (e *entry) heldBy(part string) bool {
	h := e.holder
	return h != nil && (contains(h.App, part) || contains(h.Host, part) || contains(h.Session, part) || contains(h.Instance, part))
}

// contains is strings.Contains of text in lower case, without the copy where text
// is too short anyhow.
func contains(text, part string) bool {
	return len(text) >= len(part) && strings.Contains(strings.ToLower(text), part)
}

// value is what the order compares.
func (e *entry) value(by Order) int64 {
	switch by {
	case ByAge:
		return e.heldSince()
	case ByTTL:
		return e.expires()
	default:
		return 0
	}
}

// expires is when the lock expires, in ms since 1970.
func (e *entry) expires() int64 {
	switch {
	case e.ttl == locksteward.NoExpiry:
		return math.MaxInt64
	case e.expireAt > 0:
		return e.expireAt
	default:
		return e.at/1000 + e.ttl.Milliseconds()
	}
}

// heldSince is when the hold began, in µs since 1970: what locksteward.Lock.Age
// says, on a packed look.
func (e *entry) heldSince() int64 {
	if e.claim != nil && !e.claim.Acquired.IsZero() {
		return min(e.at, micros(e.claim.Acquired))
	}
	since := e.at
	if e.firstSeen != 0 {
		since = min(since, e.firstSeen)
	}
	if e.idle > 0 {
		since = min(since, e.at-e.idle.Microseconds())
	}
	if e.acquired != 0 && e.acquired < since && e.believed() {
		return e.acquired
	}
	return since
}

// believed says that the time in the value counts, as locksteward.Lock.WrittenAge
// has it.
func (e *entry) believed() bool {
	if e.traits.asked || e.at < e.acquired {
		return false
	}
	l := locksteward.Lock{Observation: locksteward.Observation{
		At: fromMicros(e.at), Acquired: fromMicros(e.acquired), TTL: e.ttl, RenewEvery: e.traits.renewEvery,
	}}
	l.History.Renewals = int(e.renewals)
	_, doubt := l.WrittenAge()
	return doubt.ID == ""
}

// top keeps the first few locks of an order: a heap with the last of them on top.
type top struct {
	limit int
	heap  []ranked
}

// ranked is a lock at its place. The place is the one that it had when it was
// looked at.
type ranked struct {
	Position
	entry *entry
}

func (h *top) add(r ranked) {
	if len(h.heap) < h.limit {
		h.heap = append(h.heap, r)
		for i := len(h.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !h.before(up, i) {
				break
			}
			h.swap(i, up)
			i = up
		}
		return
	}
	if r.Compare(h.heap[0].Position) < 0 {
		h.heap[0] = r
		h.down(len(h.heap))
	}
}

func (h *top) before(i, j int) bool { return h.heap[i].Compare(h.heap[j].Position) < 0 }
func (h *top) swap(i, j int)        { h.heap[i], h.heap[j] = h.heap[j], h.heap[i] }

// down restores the heap of the first n from its top on.
func (h *top) down(n int) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && h.before(child, child+1) {
			child++
		}
		if !h.before(i, child) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

// sorted takes the heap apart.
func (h *top) sorted() []ranked {
	for n := len(h.heap) - 1; n > 0; n-- {
		h.swap(0, n)
		h.down(n)
	}
	return h.heap
}
