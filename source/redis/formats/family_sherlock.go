package formats

import "github.com/locksteward/locksteward"

// familySherlock is sherlock's RedisLock: a UUID under [<namespace>_]<name>.
// Nothing in the value is its own, so only keys that name the library are
// claimed.
// Source: py-sherlock/sherlock sherlock/lock.py.
var familySherlock = stringFamily("sherlock", named("sherlock"), stringLock{
	kind: "a UUID, under a key that names sherlock", value: isRandomUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})
