package initcfg

import (
	"sync"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/report"
)

// maxHolds bounds how many holds are kept by themselves, and with it the memory
// of a long look at a busy server. Later ones are counted as missing.
const maxHolds = 200_000

// Seen is what sweeps of one server showed.
type Seen struct {
	// Locks are the locks as they were seen last, by key, those that ended too.
	Locks map[string]locksteward.Lock
	// Open are the locks that the last sweep saw.
	Open map[string]locksteward.Lock
	// Holds are those that ended, Dropped how many more there were.
	Holds   []report.Hold
	Dropped int
	// Waits are the locks that somebody was seen to wait for, or could have been.
	Waits map[string]Wait
	// Reported are the report's counts that processes reported, by the class they name.
	Reported []report.Row
	// From and To are the server time of the first and last look.
	From, To   time.Time
	Sweeps     int
	Keys       int64 // of the last sweep
	Candidates int
	// Incomplete is why the last sweep is not complete; "" if it is.
	Incomplete string
}

// Wait is the most that was seen of waiting for one lock.
type Wait struct {
	Waiters int64
	Longest time.Duration
}

// Collector gathers what sweeps show. It is safe for concurrent use.
type Collector struct {
	mu       sync.Mutex
	seen     Seen
	recorder *report.Recorder
}

// NewCollector returns an empty collector.
func NewCollector(target string) *Collector {
	c := &Collector{seen: Seen{Locks: map[string]locksteward.Lock{}, Waits: map[string]Wait{}}}
	c.recorder = report.NewRecorder(target, func(h report.Hold) { // within Take
		if len(c.seen.Holds) < maxHolds {
			c.seen.Holds = append(c.seen.Holds, h)
		} else {
			c.seen.Dropped++
		}
	})
	return c
}

// AddSweep adds a sweep.
func (c *Collector) AddSweep(s locksteward.Sweep) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorder.AddSweep(s)
	if len(s.Masters) > 0 {
		c.seen.Sweeps++
		c.seen.Keys, c.seen.Candidates = s.Keys(), s.Candidates
		c.seen.Open = map[string]locksteward.Lock{}
		c.seen.Incomplete = ""
		for _, m := range s.Masters {
			if !m.Complete && c.seen.Incomplete == "" {
				c.seen.Incomplete = m.Node + ": " + m.Reason
			}
		}
	}
	c.add(s.Collect().Update())
}

// AddUpdate adds an update.
func (c *Collector) AddUpdate(u locksteward.Update) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorder.AddUpdate(u)
	c.add(u)
}

// add adds what was read of locks and of those who wait for them. c.mu is held.
func (c *Collector) add(u locksteward.Update) {
	for _, e := range u.Endings {
		if e.Lock.Kind == locksteward.KindLock {
			c.seen.Locks[e.Lock.Key] = e.Lock
		}
		delete(c.seen.Open, e.Lock.Key)
	}
	for _, l := range u.Locks {
		if l.Kind == locksteward.KindLock {
			c.seen.Locks[l.Key], c.seen.Open[l.Key] = l, l
			if l.Waiters >= 0 { // else its library does not tell
				w := c.seen.Waits[l.Key]
				w.Waiters = max(w.Waiters, int64(l.Waiters))
				c.seen.Waits[l.Key] = w
			}
		}
	}
	for _, waiter := range u.Waiters {
		w := c.seen.Waits[waiter.Key]
		w.Longest = max(w.Longest, u.At.Sub(waiter.Since))
		c.seen.Waits[waiter.Key] = w
	}
}

// Seen returns what was gathered; the collector must not be used after it.
func (c *Collector) Seen() Seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.From, c.seen.To = c.recorder.Observed()
	for _, r := range c.recorder.Rows() {
		if r.Reported {
			c.seen.Reported = append(c.seen.Reported, r)
		}
	}
	return c.seen
}
