package api

import "time"

// Silence mutes the notifications of some findings until a time. Findings
// stay in the console, and nothing is released by it.
type Silence struct {
	ID string `json:"id"`
	// Matchers must all hold for a finding: label=value, label!=value,
	// label=~regexp or label!~regexp.
	Matchers []string `json:"matchers"`
	// Fingerprint is that of the one finding that was accepted; absent for a silence
	// of labels.
	Fingerprint string `json:"fingerprint,omitempty"`
	Reason      string `json:"reason"`
	// State is "active" or "over".
	//api:enum active|over
	State string `json:"state"`
	// Findings is how many of those that fire or are pending it holds for now.
	Findings  int       `json:"findings"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
	StartsAt  time.Time `json:"starts_at"`
	EndsAt    time.Time `json:"ends_at"`
	// EndedBy and EndedAt say who ended it before its time.
	EndedBy string    `json:"ended_by,omitempty"`
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// States of a [Silence].
const (
	SilenceActive = "active"
	SilenceOver   = "over"
)

// SilenceList is the answer of GET /api/v1/silences, newest first.
type SilenceList struct {
	Silences []Silence `json:"silences"`
}

// AddSilence is the body of POST /api/v1/silences: Matchers or Fingerprint, Until
// or ForMs, and Reason.
type AddSilence struct {
	//api:maxItems 20
	Matchers []string `json:"matchers,omitempty"`
	// Fingerprint accepts the one finding that has it now.
	Fingerprint string    `json:"fingerprint,omitempty"`
	Until       time.Time `json:"until,omitzero"`
	ForMs       int64     `json:"for_ms,omitempty"`
	Reason      string    `json:"reason"`
}

// ListedFinding is a finding of a list, with who wanted to hear nothing of it.
type ListedFinding struct {
	Finding
	// SilencedBy is the id of the silence that mutes it
	// now, SilencedUntil when that ends.
	SilencedBy    string    `json:"silenced_by,omitempty"`
	SilencedUntil time.Time `json:"silenced_until,omitzero"`
	// AcceptedUntil is there beside them if the silence is of this very finding:
	// somebody accepted it.
	AcceptedUntil time.Time `json:"accepted_until,omitzero"`
}
