package locksteward

import "time"

// History is what repeated looks at one hold of one lock have told. A new
// incarnation starts a new history.
type History struct {
	// FirstSeen is the server time of the first look at this hold.
	FirstSeen   time.Time
	LastSeen    time.Time
	Looks       int
	Renewals    int // times the expiry was seen to move later
	LastRenewal time.Time
	// RenewEvery is the renewal interval learned from outside, 0 before two
	// renewals were seen.
	RenewEvery time.Duration
}

// Lock is all that is known of one lock key now.
type Lock struct {
	Observation
	History History
}

// Age returns how long the lock has been held at the moment it was last looked
// at, where that comes from, and whether the true age may be larger. Basis
// AgeNone comes with age 0.
//
// The holder's word counts where there is one (it is server time). Otherwise
// the larger of "seen for" and "idle for" is taken: both are lower bounds.
func (l Lock) Age() (age time.Duration, basis AgeBasis, minimum bool) {
	if l.Claim != nil && !l.Claim.Acquired.IsZero() {
		return max(0, l.At.Sub(l.Claim.Acquired)), AgeClaimed, false
	}
	observed := time.Duration(0)
	if !l.History.FirstSeen.IsZero() {
		observed = max(0, l.At.Sub(l.History.FirstSeen))
	}
	switch {
	case l.Idle > observed:
		return l.Idle, AgeIdle, true
	case observed > 0:
		return observed, AgeObserved, true
	default:
		return 0, AgeNone, true
	}
}

// SameHold says whether b, seen later under the same key, may be the same
// acquisition as a: same type, value and, where both have one, same claim.
func SameHold(a, b Observation) bool {
	if a.Type != b.Type || a.TokenDigest != b.TokenDigest || a.TokenDigest == "" {
		return false
	}
	if a.Claim != nil && b.Claim != nil && a.Claim.ID != b.Claim.ID {
		return false
	}
	return true
}

// EndedHow is how a hold ended, as far as it can be told from outside.
type EndedHow string

const (
	// EndedReleased is a release by the holder: the key and its metadata went
	// together. Foreign dialects cannot tell, so for them it means "gone before
	// its expiry".
	EndedReleased EndedHow = "released"
	// EndedExpired is a lease that ran out.
	EndedExpired EndedHow = "expired"
	// EndedDeleted is a lock of ours deleted before its expiry by somebody else.
	EndedDeleted EndedHow = "deleted"
	// EndedReplaced is another incarnation under the same key.
	EndedReplaced EndedHow = "replaced"
)

// Ending is a hold that was seen and is over, established by a complete pass of
// the master that owns the key or by a direct read there.
type Ending struct {
	Lock Lock
	How  EndedHow
	At   time.Time // server time of the look that found it gone
}

// Loss is a hold of ours that ended without a release: its metadata outlived
// it, or its successor found the metadata.
type Loss struct {
	Target string
	DB     int
	Node   string
	Key    string
	Class  string
	How    EndedHow  // expired, deleted or replaced
	At     time.Time // server time of the look that found it
	// Deadline is when the lease would have run out, server time.
	Deadline time.Time
	Claim    Claim
	Holder   Holder
	// Instance is the holder's heartbeat; nil when its key is gone.
	Instance *Instance
}
