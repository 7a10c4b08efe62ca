package api

// Class is a named family of lock keys with its policy, defaults filled in. The
// agent fills it from its configuration; lists must not be nil.
type Class struct {
	Class string   `json:"class"`
	Match []string `json:"match"`
	// Matched is whether a lock of the class was seen since the agent's start; null while that
	// is not known, and of replicas. A pattern that matches nothing may be misspelt.
	Matched    *bool  `json:"matched"`
	Team       string `json:"team"`
	RunbookURL string `json:"runbook_url"`
	// ExpectMs is null when nothing is expected of its holds.
	ExpectMs *int64 `json:"expect_ms"`
	// TTL is "required", "allowed-none", or empty: as the library does.
	//api:enum |required|allowed-none
	TTL      string `json:"ttl"`
	MaxTTLMs int64  `json:"max_ttl_ms"`
	// WarnTTLBelowMs and MaxWaitMs are null where the class sets no such limit.
	WarnTTLBelowMs *int64 `json:"warn_ttl_below_ms"`
	MaxWaitMs      *int64 `json:"max_wait_ms"`
	// MaxFailures is the largest share of acquires that may end without the lock.
	MaxFailures float64  `json:"max_failures"`
	DeadWhen    []string `json:"dead_when"`
	//api:enum off|approve|auto
	Release   string `json:"release"`
	Approvals int    `json:"approvals"`
	//api:enum deny|alert|allow
	SelfApproval string `json:"self_approval"`
}
