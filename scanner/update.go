package scanner

import (
	"slices"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// apply applies readings of single locks to the table. It returns the update that they
// make, and the change of each. Locks that are gone stay in the table if keepGone is set.
func (s *Scanner) apply(b source.Batch, keepGone bool) (locksteward.Update, []change) {
	var (
		losses   []locksteward.Loss
		waiters  []locksteward.Waiter
		readings = make([]reading, 0, len(b.Readings))
	)
	for i := range b.Readings {
		r := &b.Readings[i]
		if r.State == source.Unread {
			continue
		}
		losses, waiters = append(losses, r.Losses...), append(waiters, r.Waiters...)
		one := reading{key: r.Name, at: micros(r.At), gone: r.State == source.Absent}
		if r.State == source.Held {
			one.lock = new(lockStateOf(*r.Lock, r.WaitersApart))
		}
		readings = append(readings, one)
	}
	update, changes := s.applyReadings(b, readings, losses, keepGone)
	update.Waiters = waiters
	sortWaiters(update.Waiters)
	return update, changes
}

func (s *Scanner) applyReadings(b source.Batch, readings []reading, lost []locksteward.Loss, keepGone bool) (locksteward.Update, []change) {
	update := locksteward.Update{Target: s.target.Name, Started: b.Began, Duration: time.Since(b.Began), Losses: lost}
	losses := map[lossKey]locksteward.Loss{}
	for _, l := range lost {
		losses[lossKey{l.Key, l.Claim.ID}] = l
	}
	for i := range readings {
		update.At = maxTime(update.At, fromMicros(readings[i].at))
	}
	changes := s.table.apply(&batch{
		node: b.Node, began: b.Began, losses: losses, keepGone: keepGone, about: len(readings), readings: slices.Values(readings),
	})
	for i := range changes {
		c := &changes[i]
		if c.lock != nil {
			update.Locks = append(update.Locks, *c.lock)
		}
		if c.ended != nil {
			update.Endings = append(update.Endings, *c.ended)
		}
		if c.loss != nil {
			update.Losses = append(update.Losses, *c.loss)
		}
	}
	sortLocks(update.Locks)
	sortLosses(update.Losses)
	return update, changes
}
