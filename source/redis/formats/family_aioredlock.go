package formats

import (
	"time"

	"github.com/locksteward/locksteward"
)

// familyAioredlock is aioredlock: a UUID under a name as given. Nothing in the
// value is its own, so only keys that name the library are claimed.
// Source: joanvila/aioredlock aioredlock/{algorithm,redis}.py.
var familyAioredlock = stringFamily("aioredlock", named("aioredlock"), stringLock{
	kind: "a UUID, under a key that names aioredlock", value: isRandomUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
	renewEvery: 6 * time.Second, // 0.6 of the default TTL of 10 s
})
