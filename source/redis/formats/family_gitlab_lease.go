package formats

import "github.com/locksteward/locksteward"

// familyGitLabLease is GitLab's ExclusiveLease: a UUID under
// gitlab:exclusive_lease:<key>, always with a lease.
// Source: gitlabhq/gitlabhq lib/gitlab/exclusive_lease.rb.
var familyGitLabLease = stringFamily("gitlab-lease", prefixed("gitlab:exclusive_lease:"), stringLock{
	kind: "a UUID, as GitLab writes it", value: isFreshUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
})
