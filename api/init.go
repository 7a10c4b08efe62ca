package api

// InitPlan is what `locksteward init --output json` prints: the classes that are
// proposed, and the configuration that they make.
type InitPlan struct {
	Target string `json:"target"`
	// ObservedMs is the time from the first look to the last, Sweeps how many there
	// were.
	ObservedMs int64          `json:"observed_ms"`
	Sweeps     int            `json:"sweeps"`
	Keys       int64          `json:"keys"`
	Candidates int            `json:"candidates"`
	Classes    []InitProposal `json:"classes"`
	// Unassigned are the lock keys of no proposed class, at most 1000 of them;
	// UnassignedTotal counts all.
	Unassigned      []Key `json:"unassigned"`
	UnassignedTotal int   `json:"unassigned_total"`
	// File is where the configuration is or would be written, Written whether it
	// was. Config is its text, with the accepted classes.
	File    string `json:"file"`
	Written bool   `json:"written"`
	Config  string `json:"config"`
	// Incomplete is why the last sweep was cut short; absent if it was not.
	Incomplete string `json:"incomplete,omitempty"`
}

// InitProposal is one class that could be configured.
type InitProposal struct {
	Class    string   `json:"class"`
	Match    []string `json:"match"`
	Accepted bool     `json:"accepted"`
	// Locks counts the keys that were seen, Open those held now, Holds the holds
	// that ended.
	Locks      int      `json:"locks"`
	Open       int      `json:"open"`
	Holds      int64    `json:"holds"`
	WithoutTTL int      `json:"without_ttl"`
	Examples   []Key    `json:"examples"`
	Libraries  []string `json:"libraries"`
	// TTLMinMs and TTLMaxMs are the range of the TTLs left; null without any.
	TTLMinMs *int64 `json:"ttl_min_ms"`
	TTLMaxMs *int64 `json:"ttl_max_ms"`
	// OldestMs is the age of the lock held longest; null when not known.
	OldestMs        *int64          `json:"oldest_ms"`
	OldestIsMinimum bool            `json:"oldest_is_minimum"`
	Watched         bool            `json:"watched"`
	Suggested       SuggestedPolicy `json:"suggested"`
	// TTL and MaxTTLMs are what is written; empty and null for nothing.
	TTL      string `json:"ttl"`
	MaxTTLMs *int64 `json:"max_ttl_ms"`
}
