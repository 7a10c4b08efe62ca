package alert

import (
	"sync"
	"time"
)

const (
	// tripAfter is how many notifications in a row must fail before the circuit opens:
	// one that is refused says little about the receiver.
	tripAfter = 3
	// circuitCap bounds the pause before the next try.
	circuitCap = time.Minute
	// gonePause is the pause after a receiver answered 410 (gone).
	gonePause = time.Hour
	// maxFailing bounds how many failed notifications a circuit remembers.
	maxFailing = 1000
)

// failureCause is why a notification failed and waits for another attempt.
type failureCause int

const (
	// causeOutage: the receiver has accepted nothing since.
	causeOutage failureCause = iota + 1
	// causePast: the receiver has accepted another notification since.
	causePast
	// causeOwn: it failed again although the receiver accepts others.
	causeOwn
)

// circuit is the circuit breaker of a receiver: while it is open nothing is sent, then
// one notification at a time finds out whether the receiver works again.
type circuit struct {
	mu         sync.Mutex
	failed     map[string]bool // notifications that failed since the last one that arrived
	opened     int             // how often it was opened in a row; 0: closed
	gone       int             // answers in a row that were 410
	until      time.Time       // nothing is sent before, while it is open
	retryAfter time.Time       // nothing is sent before: the receiver asked for that
	probing    bool

	causes   map[string]failureCause // of notifications that failed and wait for another attempt
	starting bool                    // nothing was accepted since the start: an outage may be older
	accepted int                     // number of notifications that were accepted
}

// begin has the circuit expect notifications that failed before the start.
func (c *circuit) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting = true
}

// acceptedCount returns how many notifications the receiver has accepted.
func (c *circuit) acceptedCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accepted
}

// allow returns how many notifications may be sent now, at most free; if none, wait is
// the time until that changes by time alone, 0 if it does not.
func (c *circuit) allow(now time.Time, free int) (n int, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch until := c.pausedUntil(); {
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

// probe records that a notification is sent; an open circuit lets no other through.
func (c *circuit) probe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = c.opened > 0
}

// answered closes the circuit: the receiver works, whether it accepted or refused this
// notification. It returns whether the circuit was open, and whether others wait because
// of an outage that has ended. A notification that fails while others arrive is no sign
// of an outage.
func (c *circuit) answered(id string) (open, outageEnded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted++
	delete(c.causes, id)
	open = c.close()
	outageEnded = open || c.starting
	for id, why := range c.causes {
		if why == causeOutage {
			c.causes[id], outageEnded = causePast, true
		}
	}
	c.starting = false
	return open, outageEnded
}

// close closes the circuit, and returns whether it was open. The caller holds c.mu.
func (c *circuit) close() bool {
	was := c.opened > 0
	c.failed, c.opened, c.gone, c.probing, c.until = nil, 0, 0, false, time.Time{}
	return was
}

// reset forgets the receiver: it was replaced, or works. It returns whether the circuit
// was open.
func (c *circuit) reset() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retryAfter, c.causes = time.Time{}, nil
	return c.close()
}

// forget forgets a notification that was given up.
func (c *circuit) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.causes, id)
}

// inconclusive ends a probe that showed nothing of the receiver.
func (c *circuit) inconclusive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// failure is an attempt that failed.
type failure struct {
	id         string        // of the notification
	retryAfter time.Duration // the pause that the receiver asked for
	accepted   int           // acceptedCount before the attempt
}

// fail counts a notification that failed. It returns whether the circuit is open now,
// whether this opened it, and whether the notification is to be sent again soon: the
// receiver accepted another one meanwhile.
func (c *circuit) fail(now time.Time, f failure) (open, opened, soon bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = 0
	soon = c.setCause(f)
	if c.failed == nil {
		c.failed = map[string]bool{}
	}
	// The set is bounded: an open circuit needs no more names.
	if len(c.failed) < tripAfter {
		c.failed[f.id] = true
	}
	if until := now.Add(f.retryAfter); f.retryAfter > 0 && until.After(c.retryAfter) {
		c.retryAfter = until
	}
	if c.opened == 0 && len(c.failed) < tripAfter {
		return false, false, soon
	}
	// What was in flight when the circuit opened shows nothing new.
	if c.opened == 0 || c.probing {
		opened = c.opened == 0
		c.opened++
		c.probing = false
		c.until = now.Add(backoffTo(circuitCap, c.opened))
	}
	return true, opened, soon
}

// setCause records why a notification failed. The caller holds c.mu.
func (c *circuit) setCause(f failure) (soon bool) {
	if len(c.causes) >= maxFailing {
		c.causes = nil
	}
	if c.causes == nil {
		c.causes = map[string]failureCause{}
	}
	switch overtaken := c.accepted != f.accepted; {
	case c.causes[f.id] == 0 && overtaken:
		c.causes[f.id] = causePast
		return true
	case c.causes[f.id] == causePast:
		c.causes[f.id] = causeOwn
		return overtaken
	case c.causes[f.id] == 0:
		c.causes[f.id] = causeOutage
	}
	return false
}

// answeredGone counts a notification that was answered with 410. It returns whether this
// paused the receiver, since tripAfter in a row were.
func (c *circuit) answeredGone(now time.Time) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	if c.gone++; c.gone < tripAfter {
		return false
	}
	c.opened++
	c.until = now.Add(gonePause)
	return c.gone == tripAfter
}

// pausedUntil is when something may be sent again. The caller holds c.mu.
func (c *circuit) pausedUntil() time.Time {
	if c.retryAfter.After(c.until) {
		return c.retryAfter
	}
	return c.until
}

// state returns whether the circuit is open, whether the receiver answered 410, and
// until when nothing is sent.
func (c *circuit) state() (open, gone bool, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened > 0, c.opened > 0 && c.gone >= tripAfter, c.pausedUntil()
}
