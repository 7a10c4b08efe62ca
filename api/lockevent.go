package api

import "time"

// The kinds of a [LockEvent]. A hold ends with one of EndKinds.
const (
	EventAcquired      = "acquired"
	EventRenewed       = "renewed"
	EventReleased      = "released"
	EventExpired       = "expired"
	EventDeleted       = "deleted"
	EventForceReleased = "force-released"
	EventGone          = "gone"
	EventPending       = "pending"
	EventFiring        = "firing"
	EventResolved      = "resolved"
)

// EndKinds are the kinds of events that end a hold.
var EndKinds = []string{EventReleased, EventExpired, EventDeleted, EventForceReleased, EventGone}

// LockEvent is something that happened to a lock: a hold began or ended, or a
// finding on it changed. It is history, not audit.
type LockEvent struct {
	At time.Time `json:"at"`
	// Kind is "acquired", "renewed" (the last renewal that was seen of the hold),
	// "released" (it was gone before its expiry; see ByHolder), "expired", "deleted" (by
	// somebody else than its holder, before its expiry), "force-released" (by a request here),
	// "gone" (it ended, and how is not known), "pending", "firing" or "resolved" (a finding).
	//api:enum acquired|renewed|released|expired|deleted|force-released|gone|pending|firing|resolved
	Kind string `json:"kind"`
	// HeldMs is how long a hold lasted that ended, at least if HeldIsMinimum.
	HeldMs        int64 `json:"held_ms,omitempty"`
	HeldIsMinimum bool  `json:"held_is_minimum,omitempty"`
	// ByHolder says that the holder itself released the lock, as its metadata shows. Without
	// it a "released" lock was released or deleted, by whom is not known: most libraries write
	// no metadata.
	ByHolder    bool   `json:"by_holder,omitempty"`
	Renewals    int    `json:"renewals,omitempty"`
	TokenDigest string `json:"token_digest,omitempty"`
	Holder      Holder `json:"holder"`
	// Rule, Severity and Summary are of a finding.
	Rule     string `json:"rule,omitempty"`
	Severity string `json:"severity,omitempty"`
	Summary  string `json:"summary,omitempty"`
	// RequestID is the release request that ended the hold.
	RequestID string `json:"request_id,omitempty"`
}

// Words says what happened, of the end of a hold no more than is known.
func (e LockEvent) Words() string {
	switch {
	case e.Kind == EventReleased && !e.ByHolder:
		return "released or deleted"
	case e.Kind == EventGone:
		return "ended, how is not known"
	}
	return e.Kind
}
