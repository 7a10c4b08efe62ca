package formats

import "github.com/locksteward/locksteward"

// familyNodeRedisLock is node-redis-lock: one UUID per lock object under
// [<namespace>:]<name>. That is anybody's layout, so it is claimed only where the
// name says node-redis-lock.
// Source: Philmod/node-redis-lock lib/index.js.
var familyNodeRedisLock = bare(stringFamily("node-redis-lock", named("node-redis-lock"), stringLock{
	kind:       "a UUID of a node-redis-lock object",
	value:      isRandomUUID,
	origin:     originProcess,
	confidence: locksteward.ConfidenceMedium,
}))
