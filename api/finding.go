package api

import (
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
)

// Finding is one rule's verdict. Key is empty for a finding on a class or
// target. Texts are in one language.
type Finding struct {
	Rule string `json:"rule"`
	//api:enum critical|warning|info
	Severity string `json:"severity"`
	// Target is empty inside a [Scan], which names it once.
	Target string `json:"target,omitempty"`
	DB     int    `json:"db"`
	Key
	Class   string `json:"class"`
	Library string `json:"library,omitempty"`
	Subject string `json:"subject,omitempty"`
	//api:enum pending|firing|resolved
	Status string `json:"status"`
	// Risk is "deadlock" or empty.
	//api:enum |deadlock
	Risk string `json:"risk"`
	// Summary is what is wrong; of a resolved finding, why it is over.
	Summary         string   `json:"summary"`
	Evidence        []string `json:"evidence"`
	CounterEvidence []string `json:"counter_evidence"`
	Cause           string   `json:"cause"`
	Remedy          string   `json:"remedy"`
	Team            string   `json:"team,omitempty"`
	RunbookURL      string   `json:"runbook_url,omitempty"`
	Fingerprint     string   `json:"fingerprint"`
	// Proof is "proven" or "presumed" for a finding that calls a holder dead.
	//api:enum proven|presumed
	Proof string `json:"proof,omitempty"`
	// InhibitedBy is the fingerprint of the finding that is notified instead of this
	// one.
	InhibitedBy string `json:"inhibited_by,omitempty"`
	// Baseline is "known" or "new" in a scan with a baseline, else empty.
	Baseline string `json:"baseline,omitempty"`

	Since      time.Time `json:"since,omitzero"`
	FiredAt    time.Time `json:"fired_at,omitzero"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"`

	// Unlock is the whole command that frees the lock; absent when it cannot be
	// freed that way.
	Unlock string `json:"unlock,omitempty"`
}

// NewFinding converts a finding, its texts in lang ("zh", else English).
func NewFinding(f locksteward.Finding, lang string) Finding {
	return NewFindingNaming(f, lang, func(name string) string { return name })
}

// NewFindingNaming is [NewFinding] with show(name) in place of the names of locks in
// its texts. Key is the finding's own.
func NewFindingNaming(f locksteward.Finding, lang string, show func(name string) string) Finding {
	return Finding{
		Rule:            f.Rule,
		Severity:        f.Severity.String(),
		Target:          f.Target,
		DB:              f.DB,
		Key:             NewKey(f.Key),
		Class:           f.Class,
		Library:         f.Library,
		Subject:         f.Subject,
		Status:          string(f.Status),
		Risk:            f.Risk,
		Summary:         catalogue.Naming(lang, f.Message(), show),
		Evidence:        lines(f.Evidence, lang, show),
		CounterEvidence: lines(f.CounterEvidence, lang, show),
		Cause:           catalogue.Naming(lang, f.Cause, show),
		Remedy:          catalogue.Naming(lang, f.Remedy, show),
		Team:            f.Team,
		RunbookURL:      f.RunbookURL,
		Fingerprint:     f.Fingerprint(),
		Proof:           string(f.Proof),
		InhibitedBy:     f.InhibitedBy,
		Since:           stamp(f.Since),
		FiredAt:         stamp(f.FiredAt),
		ResolvedAt:      stamp(f.ResolvedAt),
	}
}

// lines are messages in lang, in their order; the result is never nil.
func lines(messages []locksteward.Message, lang string, show func(string) string) []string {
	out := make([]string, 0, len(messages))
	for _, m := range messages {
		out = append(out, catalogue.Naming(lang, m, show))
	}
	return out
}

// NewFindings converts findings in their order; the result is never nil.
func NewFindings(findings []locksteward.Finding, lang string) []Finding {
	out := make([]Finding, 0, len(findings))
	for _, f := range findings {
		out = append(out, NewFinding(f, lang))
	}
	return out
}
