package redlock

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/transport"
	"github.com/locksteward/locksteward/lock/record"
)

// nodeState is what is known of one acquisition on one node.
type nodeState uint8

const (
	stateUnknown nodeState = iota // asked, or about to be; it may take the lock yet
	stateTaken
	stateAbsent // it certainly did not
)

// track is what one acquisition may have left on which nodes.
type track struct {
	key   string
	id    string // acquisition id
	value string // never shown
	tail  string // metadata, from its member "id" on
	keys  []string

	q *quorum

	mu    sync.Mutex
	state []nodeState // by node
	end   time.Time   // no lease that was asked for is longer
}

// minSweep is how many tracks are kept before old ones are looked for.
const minSweep = 1024

// newTrack begins the track of an acquire.
func (q *quorum) newTrack(keys []string, args []any, ttl time.Duration) *track {
	return &track{
		key: keys[0], id: transport.Text(args[acquireID]), value: transport.Text(args[argValue]), tail: transport.Text(args[acquireTail]), keys: keys,
		q: q, state: make([]nodeState, len(q.nodes)),
		end: time.Now().Add(ttl + ttl/100 + 2*time.Millisecond), // clocks may run apart by 1 %
	}
}

// releaseArgs are the arguments of the release script.
func (t *track) releaseArgs() []any { return []any{t.value, "PUBLISH"} }

// class is what the metadata says.
func (t *track) class() string {
	m, _ := record.Decode("{" + t.tail)
	return m.Class
}

// track remembers the track of a lock that was taken. One that was never released
// is forgotten some time after its lease.
func (q *quorum) track(t *track) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tracks[t.value] = t
	if len(q.tracks) < q.sweep {
		return
	}
	for value, old := range q.tracks {
		old.mu.Lock()
		if now.After(old.end.Add(time.Minute)) {
			delete(q.tracks, value)
		}
		old.mu.Unlock()
	}
	q.sweep = max(minSweep, 2*len(q.tracks))
}

// tracked returns what is known of an acquisition; nil for nothing.
func (q *quorum) tracked(value string) *track {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tracks[value]
}

// untrack forgets an acquisition that is over.
func (q *quorum) untrack(value string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.tracks, value)
}

// asked notes the answer of a node to the acquire, however late.
func (t *track) asked(a answer) {
	p := stateUnknown
	switch {
	case a.granted():
		p = stateTaken
	case a.refused():
		p = stateAbsent
	case a.err != nil:
		if effect, _ := t.q.nodeFailure(opAcquire, t.key, a.err); effect != backend.EffectUnknown {
			p = stateAbsent
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state[a.node.index] = p
}

// freed notes the answer of a node to a release. Its cleaner goes on where the
// lock may still be, or may yet be taken.
func (t *track) freed(a answer) {
	t.mu.Lock()
	p := t.state[a.node.index]
	t.mu.Unlock()
	switch {
	case p == stateAbsent:
	case a.err == nil && a.reply == int64(1):
		t.mu.Lock()
		t.state[a.node.index] = stateAbsent
		t.mu.Unlock()
	case a.err != nil || p == stateUnknown:
		a.node.cleaner.add(t, p == stateUnknown)
	}
}

// absent says that the acquire certainly had no effect on n.
func (t *track) absent(n *node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state[n.index] == stateAbsent
}

// perhaps returns the nodes that took the lock or may take it yet.
func (t *track) perhaps() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*node
	for i, p := range t.state {
		if p != stateAbsent {
			list = append(list, t.q.nodes[i])
		}
	}
	return list
}

// lasts notes that a lease was asked for until end.
func (t *track) lasts(end time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if end.After(t.end) {
		t.end = end
	}
}

// over returns when no lease of this acquisition is left.
func (t *track) over() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end
}
