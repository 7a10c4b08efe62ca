package api

import "github.com/locksteward/locksteward"

// Verdict is what one rule makes of one lock.
type Verdict struct {
	Rule string `json:"rule"`
	// Result is fires, clear, not_applicable or off.
	//api:enum fires|clear|not_applicable|off
	Result string `json:"result"`
	// Reason is one English sentence.
	Reason string `json:"reason"`
	// Finding is null unless Result is fires.
	Finding *Finding `json:"finding"`
}

// NewVerdict converts what a rule said; finding is nil unless it fires.
func NewVerdict(rule, result, reason string, finding *locksteward.Finding, lang string) Verdict {
	v := Verdict{Rule: rule, Result: result, Reason: reason}
	if finding != nil {
		v.Finding = new(NewFinding(*finding, lang))
	}
	return v
}

// fired are the rules whose verdict has a finding.
func fired(verdicts []Verdict) []string {
	var rules []string
	for _, v := range verdicts {
		if v.Finding != nil {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
