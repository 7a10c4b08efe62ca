package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// laravelMarks are what the names of Laravel's locks contain: its cache
// prefixes, and the names that the framework itself locks.
var laravelMarks = [...]string{
	"-cache-", "_cache_", "_cache:", "laravel_unique_job:", "laravel-queue-overlap:",
	"framework/schedule-", "framework/command-", "illuminate:cache:flexible:lock:",
}

// familyLaravelLock is Laravel's cache lock, of unique jobs, WithoutOverlapping,
// the scheduler (11 and later) and isolated commands too: 16 random letters and
// digits per Lock object, plain or as a serialiser of phpredis stores them.
// Source: laravel/framework src/Illuminate/Cache/{Lock,RedisLock,PhpRedisLock}.php.
var familyLaravelLock = stringFamily("laravel-lock", func(key string) bool {
	for _, mark := range laravelMarks {
		if strings.Contains(key, mark) {
			return true
		}
	}
	return false
}, stringLock{
	kind: "random letters of a Laravel lock object",
	value: func(text string) bool {
		text = fromPHP(text)
		v := varietyOf(text) // a cached word must not pass for a lock
		return len(text) == 16 && every(text, isAlnum) && v.lower && v.upper && v.distinct >= 8
	},
	origin: originProcess, confidence: locksteward.ConfidenceHigh,
})
