package formats

import "github.com/locksteward/locksteward"

// familyRedLockNet is RedLock.net: a UUID under redlock:<resource>. It renews at
// half of the lease, which the value does not tell. pottery (Python) has the
// same layout: under a key that names it, it is pottery-redlock.
// Source: samcook/RedLock.net RedLockNet.SERedis/RedLock.cs.
var familyRedLockNet = stringFamily("redlock-net", func(key string) bool {
	return prefixed("redlock:")(key) && !familyPotteryRedlock.key(key)
}, stringLock{
	kind: "a UUID, as RedLock.net and pottery write it", value: isFreshUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceHigh,
})
