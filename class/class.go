// Package class holds the families of lock keys with their policy: which keys a
// team's locks have, how long a hold may last, and whether a dead lock of it may
// be released. Scanner, rules and release all judge by the same [Set].
//
// A [Set] is immutable after [NewSet] and safe for concurrent use.
package class

import "time"

// Default is the class of a lock key that no configured class claims.
const Default = "default"

// TTLPolicy says whether locks of a class must have a TTL.
type TTLPolicy string

const (
	// TTLUnset leaves it to the library: required, but for libraries that set no
	// TTL by design.
	TTLUnset TTLPolicy = ""
	// TTLRequired makes every lock without TTL critical.
	TTLRequired TTLPolicy = "required"
	// TTLAllowedNone accepts locks without TTL.
	TTLAllowedNone TTLPolicy = "allowed-none"
)

// ReleaseMode says whether locks of a class may be force-released.
type ReleaseMode string

const (
	// ReleaseOff refuses every request.
	ReleaseOff ReleaseMode = "off"
	// ReleaseApprove releases what a second person approved.
	ReleaseApprove ReleaseMode = "approve"
	// ReleaseAuto releases what was proven dead, without a person; all else as
	// ReleaseApprove.
	ReleaseAuto ReleaseMode = "auto"
)

// Proof is what an automatic release needs.
type Proof string

const (
	// ProofHeartbeat is a holder/dead that is proven (the default).
	ProofHeartbeat Proof = "heartbeat"
	// ProofRule is a dead_when that held over at least [MinSweeps] complete sweeps
	// and for auto_after.
	ProofRule Proof = "rule"
)

// MinSweeps is in how many complete sweeps in a row a rule must call a lock dead
// before it is released without a person.
const MinSweeps = 3

// SelfApproval says whether a requester may approve their own request.
type SelfApproval string

const (
	// SelfApprovalDeny demands another person (the default).
	SelfApprovalDeny SelfApproval = "deny"
	// SelfApprovalAlert lets one person do both, and tells the others.
	SelfApprovalAlert SelfApproval = "alert"
	// SelfApprovalAllow lets one person do both.
	SelfApprovalAllow SelfApproval = "allow"
)

// Class is a named family of lock keys with its policy, one element of
// `classes:` in the configuration. The zero value of every field but Name and
// Match is the default.
type Class struct {
	Name       string        `yaml:"class"`
	Match      []string      `yaml:"match"`
	Team       string        `yaml:"team"`
	RunbookURL string        `yaml:"runbook_url"`
	Expect     time.Duration `yaml:"expect"` // 0: no expectation
	TTL        TTLPolicy     `yaml:"ttl"`
	MaxTTL     time.Duration `yaml:"max_ttl"` // 0: 24h
	// WarnTTLBelow is how much of a lease that is never renewed must be left; 0
	// does not ask.
	WarnTTLBelow time.Duration `yaml:"warn_ttl_below"`
	// MaxWait is how long anybody may wait for a lock; 0: as long as they like.
	MaxWait time.Duration `yaml:"max_wait"`
	// MaxFailures is the largest share of acquires that may end without the lock,
	// above 0 up to 1; 0: [DefaultMaxFailures].
	MaxFailures float64     `yaml:"max_failures"`
	DeadWhen    []string    `yaml:"dead_when"` // rule ids and CEL expressions
	Release     ReleaseMode `yaml:"release"`   // "": off
	// Approvals is how many people must approve; 0 is one.
	Approvals int `yaml:"approvals"`
	// Denials is how many people must deny; 0 is one.
	Denials      int          `yaml:"denials"`
	SelfApproval SelfApproval `yaml:"self_approval"`
	// Approvers narrows who may decide: "team:NAME", "role:NAME" or "user:NAME",
	// one of which must be theirs. Empty: every approver.
	Approvers []string `yaml:"approvers"`
	// Proof and AutoAfter say when `release: auto` needs no person.
	Proof     Proof         `yaml:"proof"`
	AutoAfter time.Duration `yaml:"auto_after"` // 0: [DefaultAutoAfter]
	// MaxPerHour is how many locks of the class may be released in an hour; 0:
	// [DefaultMaxPerHour].
	MaxPerHour int `yaml:"max_per_hour"`
	// ManyPerMinute is how many locks of the class may be asked for at once, or be
	// released in a minute, before each further one needs one approval more; 0:
	// [DefaultManyPerMinute].
	ManyPerMinute int `yaml:"many_per_minute"`
	// LockDelay is how long nobody gets a lock of the class after its forced
	// release.
	LockDelay time.Duration `yaml:"lock_delay"`
}
