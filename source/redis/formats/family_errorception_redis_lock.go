package formats

import "github.com/locksteward/locksteward"

// familyErrorceptionRedisLock is redis-lock of npm, once errorception's: under
// lock.<name> the time in ms when the lock ends by its holder's clock. Two
// holders may write the same, so it tells nobody from another.
// Source: errorception/redis-lock index.js.
var familyErrorceptionRedisLock = bare(stringFamily("errorception-redis-lock", prefixed("lock."), stringLock{
	kind: "a point in time in milliseconds, which names no holder",
	value: func(text string) bool {
		if len(text) != 13 {
			return false
		}
		_, ok := timeShape("", text)
		return ok
	},
	origin:     originTime,
	confidence: locksteward.ConfidenceMedium,
}))
