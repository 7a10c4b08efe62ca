package redis

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// suspect is a change that a sweep found and no push had announced.
type suspect struct {
	at time.Time // when the sweep was merged, our clock
}

// missAfter is how old a change must be to count as missed.
const missAfter = time.Second

// unannounced returns what begins the check of a sweep against the watch: a change that the
// sweep finds first is suspicious where the watch has been whole since before the sweep
// before. It returns nil where nothing can be said.
func (w *watcher) unannounced(addr string) func(keys []string) {
	n := w.node(addr)
	if n == nil || !n.provable() {
		return nil
	}
	return func(keys []string) {
		if !n.provable() {
			return
		}
		now := time.Now()
		// What was pushed is about to be read.
		keys = slices.DeleteFunc(slices.Clone(keys), n.queue.has)
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, key := range keys {
			if n.plan.covers(key) {
				n.suspects[key] = suspect{at: now}
			}
		}
	}
}

// provable reports whether the watch should have announced all changes since the sweep
// before. Keyspace notifications are put to the test before they are believed.
func (n *nodeWatch) provable() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.repaired && n.mode != source.WatchSweep
}

// clearSuspects takes back what was on its way.
func (n *nodeWatch) clearSuspects(items []workItem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proven = true
	if n.mode == source.WatchKeyspace {
		n.reason = ""
	}
	if len(n.suspects) == 0 {
		return
	}
	for _, e := range items {
		delete(n.suspects, e.key)
	}
}

// judgeSuspects returns the keys that no push announced until a check that began
// at began, long enough after the sweep. n.mu is held.
func (n *nodeWatch) judgeSuspects(began time.Time) []string {
	var missed []string
	for key, s := range n.suspects {
		if began.Sub(s.at) >= missAfter {
			missed = append(missed, key)
			delete(n.suspects, key)
		}
	}
	if len(missed) > 0 && n.mode == source.WatchKeyspace {
		n.silent = true
		n.reason = "keyspace notifications do not report every change; set notify-keyspace-events to KA, or use a server with CLIENT TRACKING"
	}
	return missed
}

// miss counts a change that the watch did not report. A watch that was relied
// on is set up again.
func (w *watcher) miss(n *nodeWatch, key string) {
	n.mu.Lock()
	relied := n.mode == source.WatchTracking
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
