package class

import (
	"cmp"
	"time"
)

// DefaultMaxTTL is the longest TTL that a lock may have before ttl/too-long
// tells, unless its class says otherwise.
const DefaultMaxTTL = 24 * time.Hour

// DefaultMaxFailures is the share of failed acquires above which contention/high
// tells, unless the class says otherwise.
const DefaultMaxFailures = 0.5

// MaxFailuresOrDefault returns max_failures, or [DefaultMaxFailures].
func (c Class) MaxFailuresOrDefault() float64 { return cmp.Or(c.MaxFailures, DefaultMaxFailures) }

// MaxTTLOrDefault returns max_ttl, or [DefaultMaxTTL].
func (c Class) MaxTTLOrDefault() time.Duration { return cmp.Or(c.MaxTTL, DefaultMaxTTL) }

// ReleaseOrDefault returns release, or [ReleaseOff].
func (c Class) ReleaseOrDefault() ReleaseMode { return cmp.Or(c.Release, ReleaseOff) }

// Defaults of what limits releases.
const (
	DefaultAutoAfter     = 30 * time.Minute
	DefaultMaxPerHour    = 60
	DefaultManyPerMinute = 20
)

// Automatic says whether locks of the class may be released without a person.
func (c Class) Automatic() bool { return c.ReleaseOrDefault() == ReleaseAuto }

// ProofOrDefault returns proof, or [ProofHeartbeat].
func (c Class) ProofOrDefault() Proof { return cmp.Or(c.Proof, ProofHeartbeat) }

// AutoAfterOrDefault returns auto_after, or [DefaultAutoAfter].
func (c Class) AutoAfterOrDefault() time.Duration { return cmp.Or(c.AutoAfter, DefaultAutoAfter) }

// MaxPerHourOrDefault returns max_per_hour, or [DefaultMaxPerHour].
func (c Class) MaxPerHourOrDefault() int { return cmp.Or(c.MaxPerHour, DefaultMaxPerHour) }

// ManyPerMinuteOrDefault returns many_per_minute, or [DefaultManyPerMinute].
func (c Class) ManyPerMinuteOrDefault() int { return cmp.Or(c.ManyPerMinute, DefaultManyPerMinute) }

// DenialsOrDefault returns how many people must deny a release: at least one.
func (c Class) DenialsOrDefault() int { return max(c.Denials, 1) }

// Releasable says whether locks of the class may be force-released at all.
func (c Class) Releasable() bool { return c.ReleaseOrDefault() != ReleaseOff }

// ApprovalsOrDefault returns how many people must approve a release: at least
// one.
func (c Class) ApprovalsOrDefault() int { return max(c.Approvals, 1) }

// SelfApprovalOrDefault returns self_approval, or [SelfApprovalDeny].
func (c Class) SelfApprovalOrDefault() SelfApproval {
	return cmp.Or(c.SelfApproval, SelfApprovalDeny)
}
