package formats

import (
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// What redis-semaphore's locks have in common (swarthy/redis-semaphore
// src/{Lock,RedisMutex}.ts): a UUID per lock object, with a suffix that the
// application may add, a lockTimeout of 10 s and a renewal at 80 % of it.
const redisSemaphoreRenewEvery = 8 * time.Second

// redisSemaphoreHolder splits <uuid>[-<suffix>]. Where the suffix is a host and a
// process it names the holder.
func redisSemaphoreHolder(text string) (locksteward.Holder, bool) {
	if len(text) < uuidLength || !isLowerUUID(text[:uuidLength]) {
		return locksteward.Holder{}, false
	}
	suffix := text[uuidLength:]
	if suffix == "" {
		return locksteward.Holder{}, true
	}
	suffix, ok := strings.CutPrefix(suffix, "-")
	if !ok || suffix == "" || !isPrintableText(suffix) {
		return locksteward.Holder{}, false
	}
	holder, _ := hostAndPID(suffix)
	return holder, true
}
