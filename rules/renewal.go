package rules

import (
	"fmt"
	"time"

	"github.com/locksteward/locksteward"
)

// maxInterval bounds what a foreign program may claim as an interval, so that
// arithmetic on it cannot overflow into a verdict.
const maxInterval = 365 * 24 * time.Hour

// minInferredRenewals is how many renewals of one hold must have been seen
// before the lack of one means anything: a lock that never renews does not renew
// by design.
const minInferredRenewals = 2

// renewal is what is known of a hold's renewal at one moment.
type renewal struct {
	// known is false when nothing can be said; why says why not.
	known bool
	why   func() string

	every    time.Duration // the interval
	last     time.Time     // no later than the last renewal was seen
	after    time.Duration // since the last renewal, beyond which the next one is late
	overdue  time.Duration // beyond that; > 0 is late
	inferred bool          // from the TTL lineage, not from the holder's word
}

func (r renewal) late() bool { return r.known && r.overdue > 0 }

// onTime says that the hold renews and is not late: its process is alive.
func (r renewal) onTime() bool { return r.known && r.overdue <= 0 }

func unknownRenewal(why func() string) renewal { return renewal{why: why} }

// judgeRenewal says whether the renewal of l is late at now. It never says so
// unless the facts force it.
func judgeRenewal(l *locksteward.Lock, library locksteward.LibraryFacts, now time.Time) renewal {
	if l.Claim != nil {
		return claimedRenewal(l, now)
	}
	return inferredRenewal(l, library, now)
}

// claimedRenewal judges by what the holder wrote.
func claimedRenewal(l *locksteward.Lock, now time.Time) renewal {
	c := l.Claim
	if c.RenewEvery <= 0 {
		return unknownRenewal(because("this holder does not renew, by its own word"))
	}
	last := c.Renewed
	if last.IsZero() {
		last = c.Acquired
	}
	if last.IsZero() {
		return unknownRenewal(because("the metadata does not say when it was renewed"))
	}
	if c.MaxHold > 0 && !c.Acquired.IsZero() && !last.Add(c.RenewEvery).Before(c.Acquired.Add(c.MaxHold)) {
		return unknownRenewal(func() string {
			return fmt.Sprintf("the next renewal would be past max_hold %s, where renewal stops by design", dur(c.MaxHold))
		})
	}
	r := renewal{known: true, every: c.RenewEvery, last: last, after: lateAfter(c.RenewEvery, c.TTL)}
	r.overdue = max(0, now.Sub(last)) - r.after - renewSlack
	return r
}

// inferredRenewal judges by how the expiry was seen to move. Looks are samples: a
// move is seen later than it happened, and several may hide in one. Both err on
// the side of life: the last renewal seems more recent, and the interval, learned
// from the steps of the expiry itself, longer than they are.
func inferredRenewal(l *locksteward.Lock, library locksteward.LibraryFacts, now time.Time) renewal {
	h := l.History
	switch {
	case l.TTL == locksteward.NoExpiry:
		return unknownRenewal(because("the lock has no TTL to renew"))
	case l.SharedToken:
		return unknownRenewal(because("with a constant token a renewal cannot be distinguished from a new acquisition"))
	case h.Renewals < minInferredRenewals || h.LastRenewal.IsZero():
		return unknownRenewal(func() string {
			return fmt.Sprintf("%s seen in this hold; a lock that never renews does not renew by design",
				count(h.Renewals, "renewal", "renewals"))
		})
	}
	end, ok := expireAt(l)
	lease := end.Sub(h.LastRenewal) // of the true lease, what was left when the renewal was seen
	if !ok || lease <= 0 {
		return unknownRenewal(because("the expiry is not known"))
	}
	r := renewal{known: true, last: h.LastRenewal, inferred: true}
	switch {
	case library.RenewalsPerLease > 0:
		// The true lease is at least what was left at a look, so this interval is
		// a lower bound. What may be left before the next renewal, half of the
		// lease, grows with it: the bound is on the safe side.
		r.every = lease / time.Duration(library.RenewalsPerLease)
		r.after = lateAfter(r.every, lease)
		r.overdue = lease - r.after - renewSlack - max(0, end.Sub(now))
	case h.RenewEvery > 0:
		// The renewal was seen later than it happened by as much as the lease seems
		// shorter: what is late by these is late by the true ones.
		r.every = knownOrLearned(l.RenewEvery, h.RenewEvery)
		r.after = lateAfter(r.every, lease)
		r.overdue = max(0, now.Sub(h.LastRenewal)) - r.after - renewSlack
	default:
		return unknownRenewal(because("no renewal interval has been learned yet"))
	}
	return r
}

// knownOrLearned is the interval of a watchdog. What the steps of the expiry have
// taught is no shorter than the truth but for jitter; if it is about what is
// known of the library, which was then not configured otherwise, that is exact.
func knownOrLearned(known, learned time.Duration) time.Duration {
	if known > 0 && learned >= known-known/4 && learned <= withJitter(known) {
		return known
	}
	return learned
}

// lateAfter is how long after a renewal the next one is late: half of the lease, or the
// interval and a tenth of the lease if that is longer. One attempt that fails and is
// repeated is no more than a lease of some renewals is for: half of it is left then.
func lateAfter(every, lease time.Duration) time.Duration {
	every, lease = min(every, maxInterval), min(max(0, lease), maxInterval)
	return max(lease/2, every+lease/10)
}

// withJitter is an interval as it may be seen from outside, a quarter longer.
func withJitter(every time.Duration) time.Duration {
	every = min(every, maxInterval)
	return every + every/4
}
