package formats

import "github.com/locksteward/locksteward"

// familyActiveJobUniqueness is activejob-uniqueness: a UUID under
// activejob_uniqueness:<job class>:<md5 or no_arguments>[:runtime], or what the
// job's own lock_key says behind the prefix.
// Source: veeqo/activejob-uniqueness lib/active_job/uniqueness.
var familyActiveJobUniqueness = stringFamily("activejob-uniqueness", prefixed("activejob_uniqueness:"), stringLock{
	kind: "a UUID, as activejob-uniqueness writes it", value: isFreshUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
})
