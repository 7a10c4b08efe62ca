package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyGoRedisLockFair is go-redislock's fair lock: the request id that the
// caller gave under {name}, and who wants the lock in a sorted set. Such names
// and values are anybody's, so without its queue it is no more than a guess.
// Source: jefferyjob/go-redislock lua/{fairLock,fairUnLock}.lua, lock_fair.go.
var familyGoRedisLockFair = &family{
	name: "go-redislock-fair",
	typ:  typeString,
	key:  isBraced,
	recognise: func(s Sample) (Decoded, bool) {
		text := string(s.Value)
		if !whole(s) || s.TTL == locksteward.NoExpiry || !isRequestID(text) {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceLow,
			Identity:   lineage(s),
			Count:      1,
			Waiters:    -1,
			TokenKind:  "a request id that the caller gave",
		}
		if queue, ok := s.Beside[goRedisLockQueue(s)]; ok {
			d.Confidence = locksteward.ConfidenceMedium
			d.Waiters = int(max(0, queue.Size-1)) // the holder stays in it
		}
		return d, true
	},
	release: releaseGoRedisLock,
}

// maxRequestID bounds what is taken for a request id.
const maxRequestID = 128

// isRequestID knows what is likely given for one: a UUID, with a name before it
// or not, and a name with a number.
func isRequestID(text string) bool {
	if len(text) > maxRequestID || !isPrintableText(text) || strings.ContainsAny(text, ` {}[]"@`) || isGoRedisLockToken(text) {
		return false
	}
	if i := len(text) - uuidLength; i >= 0 && isFreshUUID(text[i:]) {
		return i == 0 || !isAlnum(text[i-1])
	}
	_, process := hostAndPID(text)
	return !process && !isAddress(text) && isName(text) && strings.ContainsAny(text, "0123456789") && strings.ContainsAny(text, "-_:#")
}
