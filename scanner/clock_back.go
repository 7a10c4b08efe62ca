package scanner

import "time"

// readTakes is by how much a server's clock may go back before that counts as a step:
// by so much, and by the time since a look began, it may be older than what is known
// already.
const readTakes = 10 * time.Second

// older says that a reading of at, begun at began by our clock, was taken before the one
// that e has. One that is older by more than the time since it began is not: the server's
// clock went back, or that of another server counts now, and those who waited until it is
// where it was would see nothing for as long as the step is.
func older(at int64, began time.Time, e *entry) bool {
	return at < e.at && e.at-at <= (readTakes+time.Since(began)).Microseconds()
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
