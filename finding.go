package locksteward

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Status is where a finding stands.
type Status string

const (
	// StatusPending is true, but not yet for as long as the rule's `for:` asks.
	StatusPending Status = "pending"
	// StatusFiring is true and notified.
	StatusFiring Status = "firing"
	// StatusResolved is no longer true.
	StatusResolved Status = "resolved"
)

// RiskDeadlock marks findings about a lock that may never be freed.
const RiskDeadlock = "deadlock"

// Proof is how surely a holder is dead.
type Proof string

const (
	// Proven is a later start in the same declared slot, or the process's own
	// orderly end.
	Proven Proof = "proven"
	// Presumed is a silence that nothing else explains.
	Presumed Proof = "presumed"
)

// Finding is one rule's verdict on a lock, a class or a target. Key is empty
// for a finding about a class or target.
type Finding struct {
	Rule     string
	Severity Severity
	Risk     string // RiskDeadlock or ""
	Status   Status

	Target  string
	DB      int
	Class   string
	Key     string
	Library string
	// Subject tells apart several findings of one rule on one key (the claim id
	// of a lost hold); usually empty.
	Subject string

	Summary Message
	// Evidence and CounterEvidence are lines.
	Evidence        []Message
	CounterEvidence []Message
	Cause           Message
	Remedy          Message
	// Resolution says why a resolved finding is over; empty for others.
	Resolution Message

	Team       string
	RunbookURL string

	// Proof says how surely the holder is dead; "" where the rule does not judge
	// that.
	Proof Proof
	// InhibitedBy is the fingerprint of the finding that explains this one and is
	// reported in its place: an inhibited finding is shown and notifies nobody. "" for
	// none.
	InhibitedBy string

	// Since is when the rule first said so, FiredAt when `for:` had passed,
	// ResolvedAt when it ended; server time, zero while not so.
	Since      time.Time
	FiredAt    time.Time
	ResolvedAt time.Time
}

// Message is the sentence about a finding: what is wrong, or why it is over.
func (f Finding) Message() Message {
	if f.Status == StatusResolved && f.Resolution.ID != "" {
		return f.Resolution
	}
	return f.Summary
}

// Fingerprint is the identity of a finding over time, restarts and agents:
// 32 hex characters of SHA-256 over rule, target, db, class-or-key and subject,
// each preceded by its length.
func (f Finding) Fingerprint() string {
	scope := "k" + f.Key
	if f.Key == "" {
		scope = "c" + f.Class
	}
	var b []byte
	for _, part := range []string{f.Rule, f.Target, strconv.Itoa(f.DB), scope, f.Subject} {
		b = appendSized(b, part)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Transition is one change of a finding's status that people are notified of:
// to firing, to resolved, or a change of severity while firing.
type Transition struct {
	// EventID is unique per transition.
	EventID string
	// Seq grows by one per transition of an agent.
	Seq     uint64
	At      time.Time
	Finding Finding
}
