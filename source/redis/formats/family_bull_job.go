package formats

import "github.com/locksteward/locksteward"

// familyBullJob is the lock of a job of Bull 3 and 4: one UUID per queue object,
// for all its jobs. With a prefix of its own it is any UUID under a name.
// Source: OptimalBits/bull lib/queue.js (token), lib/commands/{takeLock-1,extendLock-2}.lua.
var familyBullJob = bare(stringFamily("bull-job", func(key string) bool {
	own, ok := bullLock(key)
	return own && ok
}, stringLock{
	kind:       "a UUID of a Bull queue object",
	value:      isLowerUUID,
	origin:     originProcess,
	confidence: locksteward.ConfidenceHigh,
	renewEvery: bullRenewEvery,
}))
