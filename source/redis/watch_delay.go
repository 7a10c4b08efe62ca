package redis

import (
	"sync"
	"time"
)

// delayWindow is for how long a delay is reported, at least; twice as long at most.
const delayWindow = 30 * time.Second

// delays are how long changes waited, from their push, or from the
// moment at which a look was due, until what they tell had been handed on. The longest
// of the last window is what people want to know. It is safe for concurrent use.
type delays struct {
	mu           sync.Mutex
	from         time.Time // of the window
	now, earlier time.Duration
}

func (d *delays) turn(now time.Time) {
	if passed := now.Sub(d.from); passed >= delayWindow {
		d.earlier = d.now
		if passed >= 2*delayWindow {
			d.earlier = 0
		}
		d.from, d.now = now, 0
	}
}

// note takes in one delay.
func (d *delays) note(delay time.Duration, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	d.now = max(d.now, delay)
}

// longest is the longest delay lately.
func (d *delays) longest(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn(now)
	return max(d.now, d.earlier)
}

// sooner returns the earlier of two moments, as [workItem.since] has them: 0 means none.
func sooner(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// sinceOf is since when the first of some work items waits; 0 if nobody waits for any.
func sinceOf(items []workItem) (since int64) {
	for i := range items {
		since = sooner(since, items[i].since)
	}
	return since
}

// handedOn notes that what some work items were for has been handed on.
func (n *nodeWatch) handedOn(since int64) {
	if since != 0 {
		now := time.Now()
		n.w.delays.note(now.Sub(n.queue.moment(since)), now)
	}
}

// delay is the longest delay lately, and of what waits still.
func (w *watcher) delay(now time.Time) time.Duration {
	longest := w.delays.longest(now)
	for _, n := range w.all() {
		if since := n.queue.oldest(); since != 0 {
			longest = max(longest, now.Sub(n.queue.moment(since)))
		}
	}
	return longest
}
