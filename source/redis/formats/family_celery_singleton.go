package formats

import "github.com/locksteward/locksteward"

// familyCelerySingleton is celery-singleton: the id of the task under
// SINGLETONLOCK_<md5 of its name and arguments>, without TTL by default.
// Source: steinitzu/celery-singleton celery_singleton/{singleton,util}.py.
var familyCelerySingleton = stringFamily("celery-singleton", func(key string) bool {
	return hasPrefixed(key, "SINGLETONLOCK_", func(s string) bool { return len(s) == 32 && isLowerHex(s) })
}, stringLock{
	kind: "a Celery task id", value: isFreshUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceHigh, noStand: noStandTask,
	// The id is no secret that opens the lock: the library deletes by name alone.
	holder: func(text string) locksteward.Holder { return locksteward.Holder{Session: text} },
})
