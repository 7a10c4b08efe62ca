package redis

import (
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward/lock/record"
)

// changed takes the keys of a push.
func (n *nodeWatch) changed(keys []string) {
	items := make([]workItem, 0, len(keys))
	for _, key := range keys {
		if e, ok := n.itemFor(key); ok {
			items = append(items, e)
		}
	}
	n.w.events.Add(int64(len(keys)))
	n.clearSuspects(items)
	if len(items) > 0 && !n.queue.put(true, items...) {
		n.overrun()
	}
}

// itemFor says what is to be read because key changed, if anything.
func (n *nodeWatch) itemFor(key string) (workItem, bool) {
	s := n.w.s
	for _, prefix := range s.prefixes {
		if _, process := record.ParseInstanceKey(prefix, key); process || isFence(prefix, key) {
			return workItem{}, false
		}
		kind, lockKey, ok := record.ParseCompanion(prefix, key)
		if !ok {
			continue
		}
		switch kind {
		case record.KindHold:
			return workItem{key: lockKey, metaPrefix: prefix, written: true}, true
		case record.KindWaiter:
			return workItem{key: lockKey, waiters: true}, true
		default:
			return workItem{}, false
		}
	}
	if !s.mayBeLock(key) {
		return workItem{}, false
	}
	return workItem{key: key, written: true, pushes: 1}, true
}

// flushed is a FLUSHALL or FLUSHDB: whatever was there may be gone.
func (n *nodeWatch) flushed() {
	n.mu.Lock()
	clear(n.suspects) // what it took is no miss
	clear(n.waiting)
	n.mu.Unlock()
	n.w.s.host.Lost(n.addr, time.Now().Add(n.w.s.host.ClockOffset(n.addr)), true)
	n.resync()
}

// resync has every known lock of the master read again, behind what changes from now
// on: of 60,000 that is half a minute and more.
func (n *nodeWatch) resync() {
	n.mu.Lock()
	m := n.master
	n.mu.Unlock()
	if keys := n.w.s.keysOf(m.Owns); len(keys) > 0 && !n.queue.putKnown(keys) {
		n.overrun()
	}
}

const (
	// sweepPerLock is how many keys a sweep goes over at about the cost of one lock
	// that is read.
	sweepPerLock = 20
	// resyncMost is how many known locks the watch reads again itself, however few
	// keys there are beside them.
	resyncMost = 10_000
)

// catchUp has every known lock of the master looked at again, whichever way is the
// cheaper one.
func (n *nodeWatch) catchUp() {
	n.mu.Lock()
	m, keys := n.master, n.keys
	n.mu.Unlock()
	if known := int64(len(n.w.s.keysOf(m.Owns))); known > resyncMost && known*sweepPerLock > keys {
		n.w.s.host.RequestSweep()
		return
	}
	n.resync()
}

// overrun is more changed keys than may wait to be read.
func (n *nodeWatch) overrun() {
	n.mu.Lock()
	first := n.repaired
	n.repaired = false
	clear(n.suspects)
	n.mu.Unlock()
	if first {
		n.w.log.Warn("more keys change than the budget lets us read: the next sweep repairs what is left out",
			zap.String("node", n.addr), zap.Int("waiting", maxQueued))
	}
}
