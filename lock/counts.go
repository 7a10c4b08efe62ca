package lock

import (
	"maps"
	"sync"

	"github.com/locksteward/locksteward/lock/record"
)

// counts are what the heartbeat says that the process has done, by class.
type counts struct {
	mu      sync.Mutex
	classes map[string]*record.Counts
}

// note counts an event.
func (c *counts) note(e *Event) {
	var add func(*record.Counts)
	switch e.Kind {
	case EventAcquired:
		add = func(n *record.Counts) { n.Acquired++ }
	case EventHeld, EventAcquireFailed:
		add = func(n *record.Counts) { n.Failed++ }
	case EventRenewed:
		add = func(n *record.Counts) { n.Renewed++ }
	case EventRenewFailed:
		add = func(n *record.Counts) { n.RenewFailures++ }
	case EventLost:
		add = func(n *record.Counts) { n.Lost++ }
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of(e.Class)
	add(n)
	if e.Contended {
		n.Contended++
	}
}

// of returns the counts of a class; mu is held.
func (c *counts) of(class string) *record.Counts {
	n := c.classes[class]
	if n == nil && len(c.classes) >= record.MaxClasses {
		class = record.OtherClasses
		n = c.classes[class]
	}
	if n == nil {
		if c.classes == nil {
			c.classes = map[string]*record.Counts{}
		}
		n = &record.Counts{}
		c.classes[class] = n
	}
	return n
}

func (c *counts) copy() map[string]record.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]record.Counts, len(c.classes))
	for class, n := range maps.All(c.classes) {
		all[class] = *n
	}
	return all
}
