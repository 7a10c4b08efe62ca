package lock

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock/record"
)

// place is what is known of one acquisition on one node.
type place uint8

const (
	placeUnknown place = iota // asked, or about to be; it may take the lock yet
	placeTaken
	placeAbsent // it certainly did not
)

// trail is what one acquisition may have left on which nodes.
type trail struct {
	token
	q *quorum

	mu  sync.Mutex
	at  []place
	end instant // no lease that was asked for is longer
}

// minSweep is how many trails are kept before old ones are looked for.
const minSweep = 1024

// lay begins the trail of an acquire.
func (q *quorum) lay(keys []string, args []any, ttl time.Duration) *trail {
	return &trail{
		token: token{
			key: keys[0], id: text(args[argID]), value: text(args[argValue]), tail: text(args[argTail]), keys: keys,
		},
		q: q, at: make([]place, len(q.nodes)), end: q.now().add(ttl + drift(ttl)),
	}
}

// class is what the metadata says.
func (t *trail) class() string {
	m, _ := record.Decode("{" + t.tail)
	return m.Class
}

// keep remembers the trail of a lock that was taken. One that was never released
// is forgotten some time after its lease.
func (q *quorum) keep(t *trail) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trails[t.value] = t
	if len(q.trails) < q.sweep {
		return
	}
	for value, old := range q.trails {
		old.mu.Lock()
		if now.reached(old.end.add(time.Minute)) {
			delete(q.trails, value)
		}
		old.mu.Unlock()
	}
	q.sweep = max(minSweep, 2*len(q.trails))
}

// trail returns what is known of an acquisition; nil for nothing.
func (q *quorum) trail(value string) *trail {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.trails[value]
}

// lift forgets an acquisition that is over.
func (q *quorum) lift(value string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.trails, value)
}

// asked notes the answer of a node to the acquire, however late.
func (t *trail) asked(a answer) {
	p := placeUnknown
	switch {
	case a.granted():
		p = placeTaken
	case a.refused():
		p = placeAbsent
	case a.err != nil:
		if effect, _ := nodeFailure(acquireScript.Op, t.key, a.err); effect != effectUnknown {
			p = placeAbsent
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[a.node.index] = p
}

// freed notes the answer of a node to a release. Its janitor goes on where the
// lock may still be, or may yet be taken.
func (t *trail) freed(a answer) {
	t.mu.Lock()
	p := t.at[a.node.index]
	t.mu.Unlock()
	switch {
	case p == placeAbsent:
	case a.err == nil && a.reply == int64(1):
		t.mu.Lock()
		t.at[a.node.index] = placeAbsent
		t.mu.Unlock()
	case a.err != nil || p == placeUnknown:
		a.node.janitor.add(t, p == placeUnknown)
	}
}

// absent says that the acquire certainly had no effect on n.
func (t *trail) absent(n *node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[n.index] == placeAbsent
}

// perhaps returns the nodes that took the lock or may take it yet.
func (t *trail) perhaps() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*node
	for i, p := range t.at {
		if p != placeAbsent {
			list = append(list, t.q.nodes[i])
		}
	}
	return list
}

// lasts notes that a lease was asked for until end.
func (t *trail) lasts(end instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = t.end.later(end)
}

// over returns when no lease of this acquisition is left.
func (t *trail) over() instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}
