package scanner

import "time"

// readTakes is how long a direct read takes at the very most: by so much, and by
// the time that a sweep has run, a look may be older than what is known already.
const readTakes = 10 * time.Second

// older says that a look at at, server time in µs, was taken before the one that
// is known. One that is older by more than a look can take is not: the server's
// clock went back, or that of another server counts now, and whoever waited until
// it is where it was would see nothing for as long as the step is. t.mu is held.
func (t *Table) older(at int64, e *entry) bool {
	if at >= e.at {
		return false
	}
	window := readTakes
	if began := t.departed.began; !began.IsZero() {
		window += time.Since(began)
	}
	return e.at-at <= window.Microseconds()
}

// stepBack moves the history of a hold to the clock by which it is seen at at, so
// that its age goes on from the last look. t.mu is held.
func (e *entry) stepBack(at int64) {
	step := at - e.at
	if step >= 0 {
		return
	}
	e.at += step
	e.firstSeen += step
	e.lastSeen += step
	if e.lastRenewal != 0 {
		e.lastRenewal += step
	}
}
