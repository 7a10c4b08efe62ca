package locksteward

import "time"

// RequestState is where a release request stands. Final states never change.
type RequestState string

// The states of a release request, in the order of its life.
const (
	RequestPending     RequestState = "pending"
	RequestApproved    RequestState = "approved"
	RequestExecuting   RequestState = "executing"
	RequestReleased    RequestState = "released"     // the lock was deleted by us
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

// Evidence is what a request froze of the lock; approvals sign its hash and
// execution compares against it.
type Evidence struct {
	Target      string
	DB          int
	Key         string
	Class       string
	Dialect     string
	Type        string
	Identity    Identity
	TokenDigest string
	ExpireAt    int64 // PEXPIRETIME, NoExpireAt for none
	Count       int64
	Holder      Holder
	ClaimID     string
	Fence       int64
	// Findings are the rules that fired on the lock, sorted.
	Findings []string
	At       time.Time // server time of the look
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
