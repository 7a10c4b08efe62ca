package redis

import (
	"sync"
	"time"
)

// maxQueued bounds the keys that wait to be read. Beyond it the server changes faster than
// the budget lets us read, and the next sweep finds the changes.
const maxQueued = 200_000

// workItem is why a key is to be read.
type workItem struct {
	key string
	// metaPrefix is the prefix of its metadata, if a push named it.
	metaPrefix string
	// written says that a push named the key just now, so its idle time is known: none.
	written bool
	// waiters says that its waiters changed or are unknown, so they are read too.
	waiters bool
	// since is when the change was pushed or the read was due, see [queue.moment]; 0 if
	// the read is not urgent.
	since int64
	// tries counts reads that failed because the key changed meanwhile.
	tries int8
	// pushes is how many pushes named the key since it was queued: 0, 1, or 2 for more.
	pushes int8
}

// merge adds another reason to read the same key.
func (e *workItem) merge(o workItem) {
	if o.metaPrefix != "" {
		e.metaPrefix = o.metaPrefix
	}
	e.written = e.written || o.written
	e.waiters = e.waiters || o.waiters
	e.since = sooner(e.since, o.since)
	e.tries = max(e.tries, o.tries)
	e.pushes = min(e.pushes+o.pushes, 2)
}

// queue holds the keys of one master that are to be read, each once: first those that
// changed or are due, then those that are only read again, in the order of arrival. It is
// safe for concurrent use.
type queue struct {
	wake  chan struct{} // holds one token when there is something
	began time.Time

	mu     sync.Mutex
	urgent keyQueue
	calm   keyQueue
	// known are the keys of a resync, which come last: with as many as there are
	// locks, work items would take several times the room.
	known backlog
	// inProgress are the keys that are being read right now, and inProgressSince is since
	// when the first of them waits.
	inProgress      map[string]struct{}
	inProgressSince int64
}

type keyQueue struct {
	order []string
	all   map[string]workItem
}

// backlog holds keys without work items of their own: they are read with their waiters.
type backlog struct {
	order []string
	all   map[string]struct{}
}

// newQueue returns an empty queue. All queues between which work items move have the same
// begin.
func newQueue(began time.Time) *queue {
	return &queue{
		wake: make(chan struct{}, 1), began: began,
		urgent: keyQueue{all: map[string]workItem{}}, calm: keyQueue{all: map[string]workItem{}},
		inProgress: map[string]struct{}{},
	}
}

// moment is what [workItem.since] stands for.
func (q *queue) moment(since int64) time.Time { return q.began.Add(time.Duration(since)) }

// oldest is since when the first of those keys waits that changed or are due; 0 if none
// does.
func (q *queue) oldest() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.inProgressSince
	for _, key := range q.urgent.order {
		if e, ok := q.urgent.all[key]; ok {
			return sooner(since, e.since)
		}
	}
	return since
}

// put queues keys and says whether there was room. Those are urgent for which somebody
// waits: from now on if urgent says so, or since they were first queued.
func (q *queue) put(urgent bool, items ...workItem) bool {
	now := int64(max(1, time.Since(q.began)))
	q.mu.Lock()
	room := true
	for _, e := range items {
		if urgent && e.since == 0 {
			e.since = now
		}
		room = q.add(e.since != 0, e) && room
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return room
}

// putKnown queues keys to be looked at again, with their waiters, behind all others;
// it says whether there was room.
func (q *queue) putKnown(keys []string) bool {
	q.mu.Lock()
	room := true
	for _, key := range keys {
		if q.merge(key) {
			continue
		}
		if room = q.room(); !room {
			break
		}
		if q.known.all == nil {
			q.known = backlog{order: make([]string, 0, len(keys)), all: make(map[string]struct{}, len(keys))}
		}
		if _, ok := q.known.all[key]; !ok {
			q.known.all[key] = struct{}{}
			q.known.order = append(q.known.order, key)
		}
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return room
}

// merge has a work item for key look at its waiters too, if there is one.
func (q *queue) merge(key string) bool {
	for _, l := range []*keyQueue{&q.urgent, &q.calm} {
		if was, ok := l.all[key]; ok {
			was.waiters = true
			l.all[key] = was
			return true
		}
	}
	return false
}

func (q *queue) waiting() int { return len(q.urgent.all) + len(q.calm.all) + len(q.known.all) }

func (q *queue) room() bool { return q.waiting() < maxQueued }

func (q *queue) add(urgent bool, e workItem) bool {
	to, other := &q.urgent, &q.calm
	if !urgent {
		to, other = other, to
	}
	if was, ok := to.all[e.key]; ok {
		was.merge(e)
		to.all[e.key] = was
		return true
	}
	if was, ok := other.all[e.key]; ok {
		if !urgent {
			was.merge(e)
			other.all[e.key] = was
			return true
		}
		e.merge(was)
		delete(other.all, e.key) // its place in order is skipped
	}
	if _, ok := q.known.all[e.key]; ok {
		e.waiters = true
		delete(q.known.all, e.key)
	}
	if !q.room() {
		return false
	}
	to.all[e.key] = e
	to.order = append(to.order, e.key)
	return true
}

// take returns up to n keys and marks them as being read until [queue.done].
func (q *queue) take(n int) []workItem {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []workItem
	for _, l := range []*keyQueue{&q.urgent, &q.calm} {
		out = l.take(out, n)
	}
	out = q.known.take(out, n)
	for _, e := range out {
		q.inProgress[e.key] = struct{}{}
	}
	q.inProgressSince = sooner(q.inProgressSince, sinceOf(out))
	return out
}

func (l *keyQueue) take(out []workItem, n int) []workItem {
	i := 0
	for ; i < len(l.order) && len(out) < n; i++ {
		if e, ok := l.all[l.order[i]]; ok {
			delete(l.all, e.key)
			out = append(out, e)
		}
	}
	if l.order = l.order[i:]; len(l.order) == 0 {
		// A map does not shrink: after 100,000 keys it would keep their room.
		l.order, l.all = nil, map[string]workItem{}
	}
	return out
}

func (b *backlog) take(out []workItem, n int) []workItem {
	i := 0
	for ; i < len(b.order) && len(out) < n; i++ {
		if _, ok := b.all[b.order[i]]; ok {
			delete(b.all, b.order[i])
			out = append(out, workItem{key: b.order[i], waiters: true})
		}
	}
	if b.order = b.order[i:]; len(b.order) == 0 {
		*b = backlog{}
	}
	return out
}

// done marks work items as no longer in progress.
func (q *queue) done(items []workItem) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range items {
		delete(q.inProgress, e.key)
	}
	if len(q.inProgress) == 0 {
		q.inProgressSince = 0
	}
}

// has reports whether key is queued or in progress.
func (q *queue) has(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, urgent := q.urgent.all[key]
	_, calm := q.calm.all[key]
	_, under := q.inProgress[key]
	_, known := q.known.all[key]
	return urgent || calm || known || under
}

// changes is how many keys wait that changed or are due.
func (q *queue) changes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.urgent.all)
}

// size is how many keys wait.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting()
}

func (q *queue) empty() bool { return q.size() == 0 }
