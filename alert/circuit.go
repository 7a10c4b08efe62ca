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
	// maxBacking bounds how many messages a circuit remembers that did not arrive.
	maxBacking = 1000
)

// fault says what keeps a message back that did not arrive at its last attempt.
type fault int

const (
	// faultOutage: the receiver has accepted nothing since.
	faultOutage fault = iota + 1
	// faultPast: the receiver has accepted another message since.
	faultPast
	// faultOwn: it failed again although the receiver accepts others.
	faultOwn
)

// circuit spares a receiver that takes nothing: while it is open nothing is sent,
// then one message at a time finds out whether that is over.
type circuit struct {
	mu      sync.Mutex
	failed  map[string]bool // messages that did not arrive since the last that did
	opened  int             // how often it was opened in a row; 0: closed
	gone    int             // answers in a row that were 410
	until   time.Time       // nothing is sent before, while it is open
	asked   time.Time       // nothing is sent before: the receiver said so
	probing bool

	backing map[string]fault // messages that failed and wait for another attempt
	fresh   bool             // nothing was accepted since the start: what waits may wait for an outage before it
	arrived int              // how many messages were accepted
}

// begin has the circuit expect messages whose attempts failed before the start.
func (c *circuit) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = true
}

// accepted returns how many messages the receiver has accepted.
func (c *circuit) accepted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrived
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
// message, which waits no longer. It returns whether the circuit was open, and
// whether others wait for an attempt because of an outage that is over now. A message
// that fails although others arrive is no sign of an outage.
func (c *circuit) answered(id string) (open, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived++
	delete(c.backing, id)
	open = c.close()
	over = open || c.fresh
	for id, why := range c.backing {
		if why == faultOutage {
			c.backing[id], over = faultPast, true
		}
	}
	c.fresh = false
	return open, over
}

// close closes the circuit, and returns whether it was open. The caller holds c.mu.
func (c *circuit) close() bool {
	was := c.opened > 0
	c.failed, c.opened, c.gone, c.probing, c.until = nil, 0, 0, false, time.Time{}
	return was
}

// reset forgets the receiver: it is another now, or works. It returns whether the
// circuit was open.
func (c *circuit) reset() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.backing = time.Time{}, nil
	return c.close()
}

// forget forgets a message that was given up.
func (c *circuit) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.backing, id)
}

// nothing ends a try that told nothing of the receiver.
func (c *circuit) nothing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// failure is an attempt that did not arrive.
type failure struct {
	id       string        // of the message
	asked    time.Duration // how long the receiver asked to wait
	accepted int           // what accepted returned before the attempt
}

// fail counts a message that did not arrive. It returns whether the circuit is open
// now, whether this opened it, and whether the message is to be sent again soon: the
// receiver accepted another one while this one was under way.
func (c *circuit) fail(now time.Time, f failure) (open, first, soon bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = 0
	soon = c.fault(f)
	if c.failed == nil {
		c.failed = map[string]bool{}
	}
	// The set is bounded: an open circuit needs no more names.
	if len(c.failed) < tripAfter {
		c.failed[f.id] = true
	}
	if until := now.Add(f.asked); f.asked > 0 && until.After(c.asked) {
		c.asked = until
	}
	if c.opened == 0 && len(c.failed) < tripAfter {
		return false, false, soon
	}
	// What was under way when the circuit opened says nothing new.
	if c.opened == 0 || c.probing {
		first = c.opened == 0
		c.opened++
		c.probing = false
		c.until = now.Add(backoffTo(circuitCap, c.opened))
	}
	return true, first, soon
}

// fault notes what keeps a message back. The caller holds c.mu.
func (c *circuit) fault(f failure) (soon bool) {
	if len(c.backing) >= maxBacking {
		c.backing = nil
	}
	if c.backing == nil {
		c.backing = map[string]fault{}
	}
	switch overtaken := c.arrived != f.accepted; {
	case c.backing[f.id] == 0 && overtaken:
		c.backing[f.id] = faultPast
		return true
	case c.backing[f.id] == faultPast:
		c.backing[f.id] = faultOwn
		return overtaken
	case c.backing[f.id] == 0:
		c.backing[f.id] = faultOutage
	}
	return false
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
