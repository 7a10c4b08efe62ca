package formats

import "github.com/locksteward/locksteward"

// familyRedisSemaphoreMutex is redis-semaphore's Mutex and RedlockMutex: the
// identifier of a lock object under mutex:<name>.
// Source: swarthy/redis-semaphore src/RedisMutex.ts, src/mutex/*.
var familyRedisSemaphoreMutex = bare(stringFamily("redis-semaphore-mutex", prefixed("mutex:"), stringLock{
	kind:       "a UUID of a redis-semaphore object",
	value:      func(text string) bool { _, ok := redisSemaphoreHolder(text); return ok },
	origin:     originProcess,
	confidence: locksteward.ConfidenceMedium,
	renewEvery: redisSemaphoreRenewEvery,
	holder:     func(text string) locksteward.Holder { holder, _ := redisSemaphoreHolder(text); return holder },
}))
