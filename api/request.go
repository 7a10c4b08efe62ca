package api

import (
	"time"

	"github.com/locksteward/locksteward"
)

// Request is the path of one force-release.
type Request struct {
	ID           string     `json:"id"`
	State        string     `json:"state"`
	Final        bool       `json:"final"`
	Evidence     Evidence   `json:"evidence"`
	EvidenceHash string     `json:"evidence_hash"`
	Requester    string     `json:"requester"`
	Reason       string     `json:"reason"`
	CreatedAt    time.Time  `json:"created_at,omitzero"`
	ExpiresAt    time.Time  `json:"expires_at,omitzero"`
	Decisions    []Decision `json:"decisions"`
	// ApprovedUntil is when the approval lapses; absent before it.
	ApprovedUntil time.Time `json:"approved_until,omitzero"`
	FinishedAt    time.Time `json:"finished_at,omitzero"`
	// Outcome is a sentence for people about the final state.
	Outcome      string `json:"outcome"`
	WaitersWoken int64  `json:"waiters_woken"`
}

// Evidence is what a request froze of the lock.
type Evidence struct {
	Target string `json:"target"`
	DB     int    `json:"db"`
	Key
	Class       string `json:"class"`
	Dialect     string `json:"dialect"`
	Type        string `json:"type"`
	Identity    string `json:"identity"`
	TokenDigest string `json:"token_digest"`
	// ExpiresAtMs is -1 when the lock never expires, 0 when not known.
	ExpiresAtMs int64     `json:"expires_at_ms"`
	Count       int64     `json:"count"`
	Holder      Holder    `json:"holder"`
	ClaimID     string    `json:"claim_id,omitempty"`
	Fence       int64     `json:"fence"`
	Findings    []string  `json:"findings"`
	At          time.Time `json:"at,omitzero"`
}

// Decision is one person's word on a request.
type Decision struct {
	By string `json:"by"`
	// Verdict is "approve" or "deny".
	Verdict      string    `json:"verdict"`
	Reason       string    `json:"reason"`
	At           time.Time `json:"at,omitzero"`
	EvidenceHash string    `json:"evidence_hash"`
}

// CreateRequest is the body of POST /api/v1/requests. The key is given as text
// or, for one that is not valid UTF-8, as key_b64. DB may be left out: it is
// then the target's own.
type CreateRequest struct {
	Target string `json:"target"`
	DB     *int   `json:"db,omitempty"`
	Key
	Reason string `json:"reason"`
}

// Decide is the body of POST /api/v1/requests/{id}/approve and /deny.
type Decide struct {
	Reason string `json:"reason"`
	// EvidenceHash is that of the request as the person saw it. Approving needs
	// it, denying may leave it out.
	EvidenceHash string `json:"evidence_hash"`
	// ConfirmNoIdentity says that the person knows that this lock cannot be told
	// from the next one of its name. Approving a request with identity none
	// needs it.
	ConfirmNoIdentity bool `json:"confirm_no_identity,omitempty"`
}

// NewRequest converts a request.
func NewRequest(r locksteward.Request) Request {
	out := Request{
		ID:            r.ID,
		State:         string(r.State),
		Final:         r.State.Final(),
		Evidence:      NewEvidence(r.Evidence),
		EvidenceHash:  r.EvidenceHash,
		Requester:     r.Requester,
		Reason:        r.Reason,
		CreatedAt:     stamp(r.CreatedAt),
		ExpiresAt:     stamp(r.ExpiresAt),
		Decisions:     make([]Decision, 0, len(r.Decisions)),
		ApprovedUntil: stamp(r.ApprovedUntil),
		FinishedAt:    stamp(r.FinishedAt),
		Outcome:       r.Outcome,
		WaitersWoken:  r.WaitersWoken,
	}
	for _, d := range r.Decisions {
		verdict := "deny"
		if d.Approve {
			verdict = "approve"
		}
		out.Decisions = append(out.Decisions, Decision{
			By: d.By, Verdict: verdict, Reason: d.Reason, At: stamp(d.At), EvidenceHash: d.EvidenceHash,
		})
	}
	return out
}

// NewEvidence converts frozen evidence.
func NewEvidence(e locksteward.Evidence) Evidence {
	return Evidence{
		Target:      e.Target,
		DB:          e.DB,
		Key:         NewKey(e.Key),
		Class:       e.Class,
		Dialect:     e.Dialect,
		Type:        e.Type,
		Identity:    string(e.Identity),
		TokenDigest: e.TokenDigest,
		ExpiresAtMs: e.ExpireAt,
		Count:       e.Count,
		Holder:      NewHolder(e.Holder),
		ClaimID:     e.ClaimID,
		Fence:       e.Fence,
		Findings:    list(e.Findings),
		At:          stamp(e.At),
	}
}
