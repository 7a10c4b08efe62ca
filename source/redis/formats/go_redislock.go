package formats

import (
	_ "embed" // for the script
	"strconv"
	"strings"
)

// What the string locks of go-redislock have in common (jefferyjob/go-redislock
// lua/{reentrant,fair,multi}Lock.lua): the name in braces, so that what stands
// beside the lock is in its slot.

// goRedisLockKind is the token that the library makes.
const goRedisLockKind = "a UUID, as go-redislock writes it"

//go:embed go_redislock.lua
var goRedisLockLua string

// releaseGoRedisLock removes what any of them keeps beside the lock. The script
// makes the names itself: one of them has the token in it.
func releaseGoRedisLock(s Sample, p plan) (Command, error) {
	return p.command(goRedisLockLua, nil, s.Value), nil
}

func isGoRedisLockToken(text string) bool { return hasPrefixed(text, "lock_token:", isFreshUUID) }

// isBraced knows {name}.
func isBraced(key string) bool {
	return len(key) > 2 && key[0] == '{' && strings.IndexAny(key[1:], "{}") == len(key)-2
}

// goRedisLockCounter is how often the holder has taken the lock.
func goRedisLockCounter(s Sample) string { return s.Key + ":count:" + string(s.Value) }

// goRedisLockQueue is who wants a fair lock, its holder at the head.
func goRedisLockQueue(s Sample) string { return s.Key + ":queue" }

// goRedisLockAsks names what stands beside a lock that may be go-redislock's.
func goRedisLockAsks(s Sample) []Ask {
	switch {
	case !isBraced(s.Key) || !whole(s):
		return nil
	case isGoRedisLockToken(string(s.Value)):
		return []Ask{{Key: goRedisLockCounter(s), Type: typeString}}
	case isRequestID(string(s.Value)):
		return []Ask{{Key: goRedisLockQueue(s), Type: typeZSet}}
	default:
		return nil
	}
}

// goRedisLockCount reads the counter's text; 1 if there is none.
func goRedisLockCount(text string) int64 {
	count, ok := countOf(text)
	if !ok {
		return 1
	}
	return count
}

// countOf reads a number of holds, which is never 0 in Redis.
func countOf(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return n, err == nil && n > 0 && isDigits(text)
}
