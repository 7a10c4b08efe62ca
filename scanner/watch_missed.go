package scanner

import (
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
)

// suspect is a change that a sweep found and no push had told of.
type suspect struct {
	at time.Time // when the sweep was merged, our clock
}

// missAfter is how old a change must be to count as missed.
const missAfter = time.Second

// suspicion begins the check of a sweep against the watch: a change that it finds
// first is suspicious where the watch has been whole since before the sweep
// before. It is used by one goroutine, with the table locked.
type suspicion struct {
	node *nodeWatch
	at   time.Time
}

// suspicionOf returns nil where nothing can be said.
func (w *watcher) suspicionOf(addr string) *suspicion {
	n := w.node(addr)
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// Keyspace notifications are put to the test before they are believed.
	if !n.repaired || n.mode == WatchSweep {
		return nil
	}
	return &suspicion{node: n, at: time.Now()}
}

// found takes one look of a sweep beside what was known of the key: old is nil if
// it was not known, and now is nil if the key is gone.
func (s *suspicion) found(key string, old *entry, now *lockState, at int64) {
	if s == nil || !changedBetween(old, now, at) {
		return
	}
	n := s.node
	if n.queue.has(key) {
		return // told, and about to be read
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plan.covers(key) {
		n.suspects[key] = suspect{at: s.at}
	}
}

// changedBetween says whether somebody wrote the key between two looks. That a
// lease ran out is no write.
func changedBetween(old *entry, now *lockState, at int64) bool {
	switch {
	case old == nil:
		return now != nil
	case now == nil:
		return old.expireAt <= 0 || at/1000 < old.expireAt
	case !sameHold(&old.lockState, now):
		return true
	default:
		moved := now.expireAt - old.expireAt
		return moved > computedTolerance || moved < -computedTolerance
	}
}

// clearSuspects takes back what was on its way.
func (n *nodeWatch) clearSuspects(items []workItem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proven = true
	if n.mode == WatchKeyspace {
		n.reason = ""
	}
	if len(n.suspects) == 0 {
		return
	}
	for _, e := range items {
		delete(n.suspects, e.key)
	}
}

// judgeSuspects returns the keys that no push told of until a check that began
// at began, long enough after the sweep. n.mu is held.
func (n *nodeWatch) judgeSuspects(began time.Time) []string {
	var missed []string
	for key, s := range n.suspects {
		if began.Sub(s.at) >= missAfter {
			missed = append(missed, key)
			delete(n.suspects, key)
		}
	}
	if len(missed) > 0 && n.mode == WatchKeyspace {
		n.silent = true
		n.reason = "keyspace notifications do not tell of every change; set notify-keyspace-events to KA, or use a server with CLIENT TRACKING"
	}
	return missed
}

// miss counts a change that the watch did not tell of. A watch that was relied
// on is set up again.
func (w *watcher) miss(n *nodeWatch, key string) {
	n.mu.Lock()
	relied := n.mode == WatchTracking
	n.mu.Unlock()
	if !relied {
		return
	}
	w.missed.Add(1)
	w.log.Error("the watch missed a change: unless somebody used SWAPDB that is a defect; it is set up again",
		zap.String("node", n.addr), zap.String("key", locksteward.DisplayKey(key)))
	select {
	case n.replan <- struct{}{}:
	default:
	}
}

// merged ends the check: a master whose pass over so many keys was complete, and began
// after the watch was set up, has no unknown changes left.
func (w *watcher) merged(addr string, began time.Time, keys int64) {
	n := w.node(addr)
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys = keys
	if !n.since.IsZero() && n.since.Before(began) {
		n.repaired = true
	}
}
