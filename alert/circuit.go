package alert

import (
	"sync"
	"time"
)

const (
	// tripAfter is how many messages in a row must fail before a receiver is left
	// alone: one that it does not take is no sign of its death.
	tripAfter = 3
	// circuitCap bounds how long it is left alone before the next try.
	circuitCap = time.Minute
	// goneRest is how long a receiver is left alone that says that it is gone for good.
	goneRest = time.Hour
)

// circuit spares a receiver that takes nothing: while it is open nothing is sent,
// then one message at a time finds out whether that is over.
type circuit struct {
	mu      sync.Mutex
	failed  map[string]bool // messages that did not arrive since the last that did
	opened  int             // how often it was opened in a row; 0: closed
	gone    int             // messages in a row that were answered with 410
	until   time.Time       // nothing is sent before, while it is open
	asked   time.Time       // nothing is sent before: the receiver said so
	probing bool
}

// allow says how many of free messages may be sent now; if none, wait is how long
// it is until that changes by time alone, 0 if it does not.
func (c *circuit) allow(now time.Time, free int) (n int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch until := c.rest(); {
	case now.Before(until):
		return 0, until.Sub(now)
	case c.opened == 0:
		return free, 0
	case c.probing:
		return 0, 0
	default:
		return min(free, 1), 0
	}
}

// probe notes that a message is sent; the open circuit lets no other through.
func (c *circuit) probe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = c.opened > 0
}

// answered closes the circuit: the receiver works, whatever it said to this
// message. It returns whether the circuit was open.
func (c *circuit) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.opened > 0
	c.failed, c.opened, c.gone, c.probing, c.until = nil, 0, 0, false, time.Time{}
	return was
}

// reset forgets the receiver: it is another now, or works. It returns whether the
// circuit was open.
func (c *circuit) reset() bool {
	was := c.answered()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = time.Time{}
	return was
}

// nothing ends a try that told nothing of the receiver.
func (c *circuit) nothing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// fail counts a message that did not arrive; asked is how long the receiver asked
// to wait. It returns whether the circuit is open now, and whether this opened it.
func (c *circuit) fail(now time.Time, id string, asked time.Duration) (open, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = map[string]bool{}
	}
	// The set is bounded: an open circuit needs no more names.
	if len(c.failed) < tripAfter {
		c.failed[id] = true
	}
	if until := now.Add(asked); asked > 0 && until.After(c.asked) {
		c.asked = until
	}
	if c.opened == 0 && len(c.failed) < tripAfter {
		return false, false
	}
	// What was under way when the circuit opened says nothing new.
	if c.opened == 0 || c.probing {
		first = c.opened == 0
		c.opened++
		c.probing = false
		c.until = now.Add(backoffTo(circuitCap, c.opened))
	}
	return true, first
}

// left counts a message whose answer was that the receiver is gone for good. It
// returns whether that left it alone, since so many said so in a row.
func (c *circuit) left(now time.Time) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	if c.gone++; c.gone < tripAfter {
		return false
	}
	c.opened++
	c.until = now.Add(goneRest)
	return c.gone == tripAfter
}

// rest is when something may be sent again.
func (c *circuit) rest() time.Time {
	if c.asked.After(c.until) {
		return c.asked
	}
	return c.until
}

// state is whether the circuit is open, and until when nothing is sent; gone says
// that the receiver wants no more.
func (c *circuit) state() (open, gone bool, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened > 0, c.opened > 0 && c.gone >= tripAfter, c.rest()
}
