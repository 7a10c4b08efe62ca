package report

import (
	"strconv"
	"time"

	"github.com/locksteward/locksteward"
)

// Hold is one hold that ended, and for how long it lasted as far as it can be
// known.
type Hold struct {
	Class   string
	DB      int
	Key     string // exact bytes
	Library string
	Holder  locksteward.Holder
	How     locksteward.EndedHow
	EndedAt time.Time // server time of the look that found it over
	// Low is how long it lasted at least. High is how long at most, if Bounded.
	Low, High time.Duration
	Bounded   bool
	// Several says that it may have been several holds of one owner in a row,
	// which look like one from outside; Low is then 0.
	Several bool
	// Lease is how long its TTL was set to at least; locksteward.NoExpiry for none,
	// 0 for not known.
	Lease time.Duration
	// Renewed says that its expiry was seen to move, or that the holder says it
	// renews.
	Renewed bool
}

// Measure says how long the hold of an ending lasted. since returns a moment
// before which a lock that was first seen at the given time cannot have begun,
// false if none is known; expired says that the server removed the lock when its
// lease ran out, at deadline.
func Measure(e locksteward.Ending, since func(firstSeen time.Time) (time.Time, bool), deadline time.Time) Hold {
	l := e.Lock
	h := Hold{
		Class: l.Class, DB: l.DB, Key: l.Key, Library: l.Library, Holder: l.Holder, How: e.How, EndedAt: e.At,
		Lease: LeaseOf(l), Renewed: renews(l),
	}
	if l.Claim != nil && !l.Claim.Acquired.IsZero() {
		began := l.Claim.Acquired
		h.Low, h.High, h.Bounded = l.At.Sub(began), e.At.Sub(began), true
		if !deadline.IsZero() && !deadline.Before(l.At) && !deadline.After(e.At) {
			h.Low, h.High = deadline.Sub(began), deadline.Sub(began)
		}
	} else {
		h.Low = l.At.Sub(l.History.FirstSeen)
		if began, ok := since(l.History.FirstSeen); ok {
			h.High, h.Bounded = e.At.Sub(began), true
		}
		h.Several = !oneHold(l)
	}
	h.Low, h.High = max(0, h.Low), max(0, h.High)
	if h.Several {
		h.Low = 0
	}
	if h.Bounded {
		h.High = max(h.High, h.Low)
	}
	return h
}

// oneHold says whether all looks at the lock were of one acquisition: its token
// is fresh for each, or its expiry stood still to the millisecond.
func oneHold(l locksteward.Lock) bool {
	return l.Identity == locksteward.IdentityStrong || l.ExpireAt > 0 && l.History.Renewals == 0
}

func renews(l locksteward.Lock) bool {
	return l.History.Renewals > 0 || l.Claim != nil && (l.Claim.RenewEvery > 0 || l.Claim.Renewals > 0)
}

// LeaseOf is the TTL that the lock was given last, at least: the holder's word,
// or what was left when it was first seen with it.
func LeaseOf(l locksteward.Lock) time.Duration {
	switch {
	case l.NeverExpires():
		return locksteward.NoExpiry
	case l.Lifetime == locksteward.LifetimeSession:
		return 0
	case l.Claim != nil && l.Claim.TTL > 0:
		return l.Claim.TTL
	case l.ExpireAt > 0:
		set := l.History.FirstSeen
		if l.History.LastRenewal.After(set) {
			set = l.History.LastRenewal
		}
		return max(l.TTL, time.UnixMilli(l.ExpireAt).Sub(set))
	default:
		return max(0, l.TTL)
	}
}

// HolderText names a holder by what is known of it, app@host:pid; "" for nothing.
// Instances and sessions are left out: some libraries make them of the token.
func HolderText(h locksteward.Holder) string {
	text := h.App
	if h.Host != "" {
		text += "@" + h.Host
	}
	if h.PID != 0 {
		text += ":" + strconv.Itoa(h.PID)
	}
	return text
}
