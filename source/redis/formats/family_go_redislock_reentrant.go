package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyGoRedisLockReentrant is go-redislock's plain lock, re-entrant or of
// several names: a token per lock object under {name}, and a counter beside it.
// Before version 1.1.4 the names had no braces.
// Source: jefferyjob/go-redislock lua/{reentrantLock,reentrantUnLock,multiLock}.lua.
var familyGoRedisLockReentrant = goRedisLockReentrant()

func goRedisLockReentrant() *family {
	f := bare(stringFamily("go-redislock-reentrant", nil, stringLock{
		kind: goRedisLockKind, value: isGoRedisLockToken,
		origin: originProcess, confidence: locksteward.ConfidenceHigh,
	}))
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		d.Count = goRedisLockCount(string(s.Beside[goRedisLockCounter(s)].Value))
		return d, ok
	}
	f.release = releaseGoRedisLock
	// The counter ends when the lock would have, so it is nobody's orphan.
	f.companion = func(key string) (string, bool) {
		lock, token, ok := cutLast(key, ":count:")
		return "", ok && lock != "" && strings.HasPrefix(token, "lock_token:") && isGoRedisLockToken(token)
	}
	return f
}
