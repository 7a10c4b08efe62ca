package scanner

import (
	"container/heap"
	"time"
)

// dueSlack is added to an expiry, so that the key is read when it is gone and not in its
// last millisecond.
const dueSlack = 3 * time.Millisecond

// due is when an entry is to be read even if nothing is pushed, and its place among the
// deadlines. Times are µs since 1970 by our clock, 0 for none.
type due struct {
	expiry int64
	asked  int64 // by [Scanner.Touch]
	dueNo  int32 // place in the heap plus one; 0: not in it
}

// next returns the earlier of the two, 0 for none.
func (d *due) next() int64 {
	if d.asked != 0 && (d.expiry == 0 || d.asked < d.expiry) {
		return d.asked
	}
	return d.expiry
}

// deadlines orders the locks by when they are to be read. The table's mutex guards it.
type deadlines struct {
	on    bool // kept only while a watch runs
	heap  dueHeap
	clock map[string]time.Duration // server clocks less ours, by master
	moved map[string]time.Duration // the same when what is due was moved last
	wake  chan struct{}            // holds one token when the first one changed
}

func newDeadlines() deadlines {
	return deadlines{clock: map[string]time.Duration{}, moved: map[string]time.Duration{}, wake: make(chan struct{}, 1)}
}

// setDue sets the deadline of e from its expiry. t.mu is held.
func (t *Table) setDue(e *entry) {
	e.expiry = 0
	if t.deadlines.on && e.expireAt > 0 {
		e.expiry = t.local(e, time.UnixMilli(e.expireAt).Add(dueSlack))
	}
	t.placeDue(e)
}

// local returns a server time of e's master by our clock.
func (t *Table) local(e *entry, at time.Time) int64 {
	return at.Add(-t.deadlines.clock[e.traits.node]).UnixMicro()
}

// placeDue moves e to its place in the heap. t.mu is held.
func (t *Table) placeDue(e *entry) {
	h := &t.deadlines.heap
	switch {
	case e.next() == 0:
		t.dropDue(e)
		return
	case e.dueNo == 0:
		heap.Push(h, e)
	default:
		heap.Fix(h, int(e.dueNo)-1)
	}
	if e.dueNo == 1 {
		t.deadlines.poke()
	}
}

func (d *deadlines) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// takePlace puts e in the place of the entry that it is a copy of. t.mu is held.
func (t *Table) takePlace(e *entry) {
	if e.dueNo > 0 {
		t.deadlines.heap[e.dueNo-1] = e
	}
}

// dropDue removes e from the deadlines. t.mu is held.
func (t *Table) dropDue(e *entry) {
	if e.dueNo > 0 {
		heap.Remove(&t.deadlines.heap, int(e.dueNo)-1)
	}
}

// takeDue returns the keys of all entries that are due at now, each once, and
// when the next one is, zero for none.
func (t *Table) takeDue(now time.Time) (keys []string, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, limit := &t.deadlines.heap, now.UnixMicro()
	for len(*h) > 0 {
		first := (*h)[0]
		if first.next() > limit {
			return keys, time.UnixMicro(first.next())
		}
		keys = append(keys, first.key)
		// The look that follows sets the expiry again, if there still is one.
		if first.asked <= limit {
			first.asked = 0
		}
		if first.expiry <= limit {
			first.expiry = 0
		}
		t.placeDue(first)
	}
	return keys, time.Time{}
}

// startDeadlines begins to keep the heap with all locks that are known, or ends
// that.
func (t *Table) startDeadlines(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadlines.on, t.deadlines.heap = on, nil
	for _, e := range t.entries {
		e.due = due{}
		if on {
			t.setDue(e)
		}
	}
}

// clockMoves is by how much two clocks move against each other before what is due
// moves along: more than an answer that came slowly makes of it.
const clockMoves = 50 * time.Millisecond

// ClockOffset returns how far the clock of the server at addr is before ours; false while it is not known.
func (t *Table) ClockOffset(addr string) (time.Duration, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	offset, known := t.deadlines.clock[addr]
	return offset, known
}

// offset is how far the clock of the server at addr is before ours, as far as is known.
func (t *Table) offset(addr string) time.Duration {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.deadlines.clock[addr]
}

// clockBetween notes that the server at addr said that it was now, between two moments
// of our clock. What is known of the difference stays where it is possible by that: an
// answer that came slowly says little.
func (t *Table) clockBetween(addr string, now, began, ended time.Time) {
	least, most := now.Sub(ended), now.Sub(began)
	if known := t.offset(addr); known < least || known > most {
		t.clock(addr, (least+most)/2)
	}
}

// clock notes how far a master's clock is before ours. What is due by it moves along:
// ours may be set, or run faster or slower than the server's, and the next look that
// would say so anew may be that of a sweep, an hour later.
func (t *Table) clock(addr string, offset time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.deadlines
	d.clock[addr] = offset
	step := d.moved[addr] - offset
	if step.Abs() < clockMoves {
		return
	}
	d.moved[addr] = offset
	for _, e := range d.heap {
		if e.traits.node != addr {
			continue
		}
		if e.expiry != 0 {
			e.expiry += step.Microseconds()
		}
		if e.asked != 0 {
			e.asked += step.Microseconds()
		}
	}
	heap.Init(&d.heap)
	d.poke()
}

// Touch has [Scanner.Watch] read a known lock at at, server time of its master, or
// at once if that is over, and tell its sink. It replaces what was asked for the
// same lock before; the zero time withdraws that. The hold's end withdraws it too.
// Without a running Watch it does nothing.
func (s *Scanner) Touch(key string, at time.Time) {
	t := s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[key]
	if !ok || !t.deadlines.on {
		return
	}
	if e.asked = 0; !at.IsZero() {
		e.asked = max(1, t.local(e, at))
	}
	t.placeDue(e)
}

// dueHeap orders entries by what is next; each knows its place.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].next() < h[j].next() }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].dueNo, h[j].dueNo = int32(i)+1, int32(j)+1
}

// Push implements [heap.Interface].
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.dueNo = int32(len(*h)) + 1
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.dueNo = 0
	return e
}
