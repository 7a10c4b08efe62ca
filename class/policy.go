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

// Releasable says whether locks of the class may be force-released at all.
func (c Class) Releasable() bool { return c.ReleaseOrDefault() != ReleaseOff }

// ApprovalsOrDefault returns how many people must approve a release: at least
// one.
func (c Class) ApprovalsOrDefault() int { return max(c.Approvals, 1) }

// SelfApprovalOrDefault returns self_approval, or [SelfApprovalDeny].
func (c Class) SelfApprovalOrDefault() SelfApproval {
	return cmp.Or(c.SelfApproval, SelfApprovalDeny)
}
