package api

import (
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// Request is the path of one force-release.
type Request struct {
	ID string `json:"id"`
	//api:enum pending|approved|executing|released|already_gone|changed|failed|unknown|denied|expired|superseded
	State        string     `json:"state"`
	Final        bool       `json:"final"`
	Evidence     Evidence   `json:"evidence"`
	EvidenceHash string     `json:"evidence_hash"`
	Requester    string     `json:"requester"`
	Reason       string     `json:"reason"`
	CreatedAt    time.Time  `json:"created_at,omitzero"`
	ExpiresAt    time.Time  `json:"expires_at,omitzero"`
	Decisions    []Decision `json:"decisions"`
	// ApprovalsGiven and DenialsGiven count people by their last word; the others
	// are how many it takes by the policy as it is now, null where the class is not
	// configured any more.
	ApprovalsGiven  int  `json:"approvals_given"`
	ApprovalsNeeded *int `json:"approvals_needed"`
	DenialsGiven    int  `json:"denials_given"`
	DenialsNeeded   *int `json:"denials_needed"`
	// Warnings are what a person should know before they approve; none of a request
	// that is over.
	Warnings []string `json:"warnings"`
	// Bundle is the id of the bundle that this is one of; it is decided on there.
	// BundleSize is how many requests that has.
	Bundle     string `json:"bundle,omitempty"`
	BundleSize int    `json:"bundle_size,omitempty"`
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
	Class   string `json:"class"`
	Library string `json:"library"`
	Type    string `json:"type"`
	//api:enum strong|lineage|none
	Identity string `json:"identity"`
	// WeakIdentity: the next hold has the same value, and nothing, or its expiry
	// alone, tells it from this one. Approving needs confirm_no_identity.
	WeakIdentity bool   `json:"weak_identity,omitempty"`
	TokenDigest  string `json:"token_digest"`
	// ExpiresAtMs is -1 when the lock never expires, 0 when not known.
	ExpiresAtMs int64     `json:"expires_at_ms"`
	Count       int64     `json:"count"`
	Holder      Holder    `json:"holder"`
	ClaimID     string    `json:"claim_id,omitempty"`
	Fence       int64     `json:"fence"`
	Findings    []string  `json:"findings"`
	At          time.Time `json:"at,omitzero"`

	// Act is "release", "take-over", "undo" or "lift" (the end of the placeholder in the
	// lock's place).
	//api:enum release|take-over|undo|lift
	Act string `json:"act"`
	// HolderAlive: the holder is known to live and to renew; its owner, type and
	// count are compared, not the expiry.
	HolderAlive bool `json:"holder_alive,omitempty"`
	// PlaceholderMs is how long a placeholder holds the key.
	PlaceholderMs int64 `json:"placeholder_ms,omitempty"`
	// UndoMs is how long the lock is kept aside for an undo.
	UndoMs int64 `json:"undo_ms,omitempty"`
	// Of is the request that an undo or a lift follows.
	Of string `json:"of,omitempty"`
	// Proof is "proven" or "presumed" where holder/dead fired.
	//api:enum proven|presumed
	Proof string `json:"proof,omitempty"`
	// BreakGlass: one person asked and decided, past the class's rules.
	BreakGlass bool `json:"break_glass,omitempty"`
	// BeyondPerMinute is many_per_minute of the class where this was asked for beyond
	// that: it needs one approval more.
	BeyondPerMinute int `json:"beyond_per_minute,omitempty"`
}

// Decision is one person's word on a request.
type Decision struct {
	By string `json:"by"`
	// Verdict is "approve" or "deny".
	//api:enum approve|deny
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
	//api:optional
	Key
	Reason string `json:"reason"`
	// HolderAlive asks for the release of a lock whose holder lives and renews, but
	// is stuck.
	HolderAlive bool `json:"holder_alive,omitempty"`
	// TakeOverMs, if positive, puts an owner that nobody is in the lock's place for
	// so long, in place of freeing it.
	TakeOverMs int64 `json:"take_over_ms,omitempty"`
	// LockDelayMs is how long nobody gets the lock after its release; left out, it is
	// what the class says.
	LockDelayMs *int64 `json:"lock_delay_ms,omitempty"`
}

// BreakGlass is the body of POST /api/v1/requests/break-glass: a request that is
// approved and executed at once, by one person.
type BreakGlass struct {
	CreateRequest
	// ConfirmNoIdentity and ConfirmHolderAlive are what [Decide] says of them.
	ConfirmNoIdentity  bool `json:"confirm_no_identity,omitempty"`
	ConfirmHolderAlive bool `json:"confirm_holder_alive,omitempty"`
}

// Follow is the body of POST /api/v1/requests/{id}/undo and /lift.
type Follow struct {
	Reason string `json:"reason"`
}

// Preview is what the execution of a request would do now. Nothing was touched
// for it.
type Preview struct {
	// Request is what would be stored, or is.
	Request Request `json:"request"`
	// Found says whether the key exists.
	Found bool `json:"found"`
	// Differences are what is other than the evidence: with any, the execution ends
	// in changed.
	Differences []string `json:"differences"`
	// Refusal is why the lock cannot be released as it stands; empty if it can.
	Refusal string `json:"refusal"`
	// Warnings are what a person should know before approving.
	Warnings []string `json:"warnings"`
	// Keys, Script and Args are what would be sent; tokens are masked.
	Keys   []string `json:"keys"`
	Script string   `json:"script"`
	Args   []string `json:"args"`
}

// Decide is the body of POST /api/v1/requests/{id}/approve and /deny.
type Decide struct {
	Reason string `json:"reason"`
	// EvidenceHash is that of the request as the person saw it. Approving needs
	// it, denying may leave it out.
	//api:optional
	EvidenceHash string `json:"evidence_hash"`
	// ConfirmNoIdentity says that the person knows that this lock cannot be distinguished
	// from the next one of its name, or by its expiry alone, and that nobody works
	// under it. Approving a request with weak_identity needs it.
	ConfirmNoIdentity bool `json:"confirm_no_identity,omitempty"`
	// ConfirmHolderAlive says that the person knows that the holder may still be
	// writing. Approving a request with holder_alive needs it.
	ConfirmHolderAlive bool `json:"confirm_holder_alive,omitempty"`
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
		Warnings:      []string{},
	}
	if r.Evidence.Bundle > 0 {
		out.Bundle, _, _ = strings.Cut(r.ID, ".")
		out.BundleSize = r.Evidence.Bundle
	}
	last := map[string]bool{}
	for _, d := range r.Decisions {
		verdict := "deny"
		if d.Approve {
			verdict = "approve"
		}
		last[strings.ToLower(d.By)] = d.Approve
		out.Decisions = append(out.Decisions, Decision{
			By: d.By, Verdict: verdict, Reason: d.Reason, At: stamp(d.At), EvidenceHash: d.EvidenceHash,
		})
	}
	for _, approved := range last {
		if approved {
			out.ApprovalsGiven++
		} else {
			out.DenialsGiven++
		}
	}
	return out
}

// NewEvidence converts frozen evidence.
func NewEvidence(e locksteward.Evidence) Evidence {
	return Evidence{
		Target:          e.Target,
		DB:              e.DB,
		Key:             NewKey(e.Key),
		Class:           e.Class,
		Library:         e.Library,
		Type:            e.Type,
		Identity:        string(e.Identity),
		WeakIdentity:    e.WeakIdentity(),
		TokenDigest:     e.TokenDigest,
		ExpiresAtMs:     e.ExpireAt,
		Count:           e.Count,
		Holder:          NewHolder(e.Holder),
		ClaimID:         e.ClaimID,
		Fence:           e.Fence,
		Findings:        list(e.Findings),
		At:              stamp(e.At),
		Act:             e.Act.String(),
		HolderAlive:     e.HolderAlive,
		PlaceholderMs:   e.Placeholder.Milliseconds(),
		UndoMs:          e.Undo.Milliseconds(),
		Of:              e.Of,
		Proof:           string(e.Proof),
		BreakGlass:      e.BreakGlass,
		BeyondPerMinute: e.BeyondPerMinute,
	}
}
