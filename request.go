package locksteward

import "time"

// RequestState is where a release request stands. Final states never change.
type RequestState string

// The states of a release request, in the order of its life.
const (
	RequestPending     RequestState = "pending"
	RequestApproved    RequestState = "approved"
	RequestExecuting   RequestState = "executing"
	RequestReleased    RequestState = "released"     // the hold was ended by us
	RequestAlreadyGone RequestState = "already_gone" // it had ended by itself
	RequestChanged     RequestState = "changed"      // not the lock that was requested; nothing was touched
	RequestFailed      RequestState = "failed"       // certain: nothing was touched
	RequestUnknown     RequestState = "unknown"      // intent without a record of its outcome; never retried
	RequestDenied      RequestState = "denied"
	RequestExpired     RequestState = "expired"
	RequestSuperseded  RequestState = "superseded"
)

// Final says that the state never changes again.
func (s RequestState) Final() bool {
	switch s {
	case RequestPending, RequestApproved, RequestExecuting:
		return false
	default:
		return true
	}
}

// Act is what a request asks for.
type Act string

// The acts. A request says released when its act was carried out.
const (
	ActRelease  Act = ""          // delete the lock
	ActTakeOver Act = "take-over" // put an owner that nobody is in its place, for a time
	ActUndo     Act = "undo"      // put back what a release set aside
	ActLift     Act = "lift"      // end a delay or a take-over: delete what stands there
)

// String returns the act in words: "release" for the zero value.
func (a Act) String() string {
	if a == ActRelease {
		return "release"
	}
	return string(a)
}

// Evidence is what a request froze of the lock, and what it asks for; approvals
// sign its hash and execution compares against it.
type Evidence struct {
	Target      string
	DB          int
	Key         string
	Class       string
	Library     string
	Type        string
	Identity    Identity
	TokenDigest string
	ExpireAt    int64 // ms since 1970, server time; NoExpireAt for none
	Count       int64
	Holder      Holder
	ClaimID     string
	Fence       int64
	// Findings are the rules that fired on the lock, sorted.
	Findings []string
	At       time.Time // server time of the look
	// Proof is how surely the holder is dead where holder/dead fired; else "".
	Proof Proof
	// Policy is a hash of the class's policy, dead_when and its expressions
	// included.
	Policy string

	Act Act
	// HolderAlive says that the holder is known to live and to renew: its owner,
	// type and count are the lock's identity then.
	HolderAlive bool
	// Placeholder is how long a placeholder holds the key after the release: the
	// lock-delay of a release, the time of a take-over.
	Placeholder time.Duration
	// Undo is how long the lock is kept aside for an undo; 0: not at all.
	Undo time.Duration
	// Of is the request that an undo or a lift follows.
	Of string
	// Bundle is how many requests one approval is for: those whose id is this one's
	// with another number behind the dot; 0: this one alone.
	Bundle int
	// BreakGlass says that one person asked and decided, past the class's rules.
	BreakGlass bool
	// SharedToken says that the value is a constant or a name: the next holder
	// writes the same. See [Observation].
	SharedToken bool
	// BeyondPerMinute is how many locks of the class may be asked for at once, or be
	// released in a minute, where this one was more: it needs one approval more than
	// it would. 0: it was not.
	BeyondPerMinute int
}

// WeakIdentity says that who approves has to confirm that nobody else works under
// the lock: the next hold has the same value, and nothing, or its expiry alone,
// tells it from this one.
func (e Evidence) WeakIdentity() bool {
	return e.Identity == IdentityNone || e.Identity == IdentityLineage && e.SharedToken
}

// Decision is one person's word on a request.
type Decision struct {
	By           string
	Approve      bool // false: deny
	Reason       string
	At           time.Time // agent's clock
	EvidenceHash string
}

// Request is the path of one force-release.
type Request struct {
	ID           string
	State        RequestState
	Evidence     Evidence
	EvidenceHash string
	Requester    string
	Reason       string
	CreatedAt    time.Time // agent's clock, as all times here
	ExpiresAt    time.Time
	Decisions    []Decision
	// ApprovedUntil is when the approval lapses; zero before it.
	ApprovedUntil time.Time
	FinishedAt    time.Time
	// Outcome is a sentence for people about the final state.
	Outcome string
	// WaitersWoken is how many clients received the wake-up; 0 if unknown.
	WaitersWoken int64
}
