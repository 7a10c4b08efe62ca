package report

import (
	"sort"
	"time"

	"github.com/locksteward/locksteward"
)

// maxPasses bounds how many sweeps are remembered. Holds that were first seen
// before them have no upper bound.
const maxPasses = 4096

// passes are the complete sweeps of a target, oldest first.
type passes struct{ list []pass }

type pass struct{ began, ended time.Time }

func (p *passes) add(s locksteward.Sweep) {
	if !s.Complete() {
		return
	}
	next := pass{began: s.At.Add(-s.Duration), ended: s.At}
	if n := len(p.list); n > 0 && next.ended.Before(p.list[n-1].ended) {
		return // the server's clock went back
	}
	if len(p.list) == maxPasses {
		p.list = append(p.list[:0], p.list[maxPasses/2:]...)
	}
	p.list = append(p.list, next)
}

// since returns the begin of the last complete sweep that was over at firstSeen:
// SCAN returns every key that is there from its begin to its end, so a lock that
// this sweep did not meet was taken after its begin.
func (p *passes) since(firstSeen time.Time) (time.Time, bool) {
	i := sort.Search(len(p.list), func(i int) bool { return !p.list[i].ended.Before(firstSeen) })
	if i == 0 {
		return time.Time{}, false
	}
	return p.list[i-1].began, true
}

// watchSlack is by how much a watched lock may be older than its first look: the
// time that a push takes at worst, and what two clocks may differ by.
const watchSlack = 2 * time.Second

// covered is since when changes of each class are noticed as they happen, without a
// gap.
type covered struct {
	from  map[string]time.Time // server time
	blind time.Duration
	// offset is how far the server's clock is ahead of the agent's.
	offset time.Duration
}

func (c *covered) note(now time.Time, classes map[string]bool, blind time.Duration) {
	if blind != c.blind {
		clear(c.from)
		c.blind = blind
	}
	for name := range c.from {
		if !classes[name] {
			delete(c.from, name)
		}
	}
	for name, full := range classes {
		if _, known := c.from[name]; full && !known {
			c.from[name] = now.Add(c.offset)
		}
	}
}

// since returns when a lock that was first seen at the given time was taken at
// the earliest, if its class was watched already.
func (c *covered) since(name string, firstSeen time.Time) (time.Time, bool) {
	from, ok := c.from[name]
	began := firstSeen.Add(-watchSlack)
	return began, ok && from.Before(began)
}
