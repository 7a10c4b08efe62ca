package locksteward

import "time"

// History is what repeated readings of one hold of one lock have shown. A new
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
	// HadTTL says that an earlier look saw an expiry, or this one does.
	HadTTL bool
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
// The holder's metadata counts where there is any (it is server time). Otherwise
// the largest of "seen for", "idle for" and what the value says
// ([Lock.WrittenAge]) is taken: all three are lower bounds.
func (l Lock) Age() (age time.Duration, basis AgeBasis, minimum bool) {
	if l.Claim != nil && !l.Claim.Acquired.IsZero() {
		return max(0, l.At.Sub(l.Claim.Acquired)), AgeClaimed, false
	}
	observed := time.Duration(0)
	if !l.History.FirstSeen.IsZero() {
		observed = max(0, l.At.Sub(l.History.FirstSeen))
	}
	if written, doubt := l.WrittenAge(); doubt.ID == "" && written > max(observed, l.Idle) {
		return written, AgeClaimed, true
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

// AgeAt is [Lock.Age] at a moment after the look, by the server's clock: for how long
// the lock has been held if nothing happened to it since. An earlier moment counts as
// that of the look.
func (l Lock) AgeAt(now time.Time) (age time.Duration, basis AgeBasis, minimum bool) {
	if since := now.Sub(l.At); since > 0 && !l.At.IsZero() {
		l.At = now
		if l.Idle > 0 {
			l.Idle += since
		}
	}
	return l.Age()
}

// Renewed says whether the hold was renewed, as was seen or as its holder counts.
func (l Lock) Renewed() bool {
	return l.History.Renewals > 0 || l.Claim != nil && l.Claim.Renewals > 0
}

// maxLease is the longest lease of a hold that nobody renews: what ttl/too-long
// allows unless its class says otherwise, and the most that lock/ gives.
const maxLease = 24 * time.Hour

// WrittenAge is how long the lock has been held by the time in its value
// (Observation.Acquired), and, if that is not to be believed, why: what was
// observed counts then, and the time is merely shown. It is 0 without a doubt
// where the value tells no time.
//
// The time is by a clock that is not the server's. It counts no more than what
// was observed when it lies in the future, and when the lease would have had to
// be longer than 24 h although nobody was seen to renew it.
func (l Lock) WrittenAge() (age time.Duration, doubt Message) {
	if l.Acquired.IsZero() {
		return 0, Message{}
	}
	age = l.At.Sub(l.Acquired)
	switch {
	case l.Asked:
		return age, NewMessage("written-age.asked")
	case age < 0:
		return age, NewMessage("written-age.future")
	case l.TTL != NoExpiry && l.History.Renewals == 0 && l.RenewEvery == 0 && age+l.TTL > maxLease:
		return age, NewMessage("written-age.too-long")
	default:
		return age, Message{}
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

// EndedHow is how a hold ended, as far as can be seen from outside.
type EndedHow string

const (
	// EndedReleased is a lock that is gone before its expiry: released by its holder if
	// [Ending.ByHolder], else perhaps deleted by anybody.
	EndedReleased EndedHow = "released"
	// EndedExpired is a lease that ran out.
	EndedExpired EndedHow = "expired"
	// EndedDeleted is a lock of ours deleted before its expiry by somebody else.
	EndedDeleted EndedHow = "deleted"
	// EndedReplaced is another incarnation under the same key.
	EndedReplaced EndedHow = "replaced"
	// EndedLapsed is a lock of ours that a release handed to a waiter which did not
	// confirm it in time.
	EndedLapsed EndedHow = "lapsed"
)

// Ending is a hold that was seen and is over, established by a complete pass of
// the master that owns the key or by a direct read there.
type Ending struct {
	Lock Lock
	How  EndedHow
	// ByHolder says that the holder's metadata went with the lock: the holder released it.
	// Locks without metadata do not tell.
	ByHolder bool
	At       time.Time // server time of the look that found it gone
	// By is what happened to the server and took the hold with it; "" if that is not
	// known, or nothing did.
	By ServerEventKind
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
