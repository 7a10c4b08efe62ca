package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyRedissonSemaphore is Redisson's RSemaphore: a number of free permits
// that names nobody. Any other counter looks the same, so it is known by its
// name only: `{map}:<hash>:semaphore`, or, with low confidence, one that says
// semaphore. Deleting it would let nobody in any more.
// Source: org/redisson/RedissonSemaphore.java.
var familyRedissonSemaphore = &family{
	name: "redisson-semaphore",
	typ:  typeString,
	key:  func(key string) bool { return containsFolded(key, "semaphore") },
	recognise: func(s Sample) (Decoded, bool) {
		return redissonCounter(s, ":semaphore", "a number of free permits, which names no holder")
	},
	refuse: "its value is a number of free permits and names no holder; without the key nobody would get in",
}

// familyRedissonLatch is Redisson's RCountDownLatch: how often it has to be
// counted down until it opens. Known by its name, as the semaphore.
// Source: org/redisson/RedissonCountDownLatch.java.
var familyRedissonLatch = &family{
	name: "redisson-latch",
	typ:  typeString,
	key:  func(key string) bool { return containsFolded(key, "latch") || containsFolded(key, "countdown") },
	recognise: func(s Sample) (Decoded, bool) {
		return redissonCounter(s, ":countdownlatch", "a count, which names no holder")
	},
	refuse: "its value is a count that others have yet to count down, and names no holder",
}

// redissonCounter decodes a number under the name of a semaphore or a latch.
func redissonCounter(s Sample, element, kind string) (Decoded, bool) {
	if !whole(s) || len(s.Value) > 10 || !isDigits(strings.TrimPrefix(string(s.Value), "-")) {
		return Decoded{}, false
	}
	d := Decoded{Confidence: locksteward.ConfidenceLow, Identity: lineage(s), Count: 1, Waiters: -1, TokenKind: kind}
	if isRedissonElement(s.Key, element) {
		d.Confidence = locksteward.ConfidenceHigh
	}
	return d, true
}

// isRedissonElement knows {object}:<hash of the element><suffix>, the name of a
// lock of one element of a map or set.
func isRedissonElement(key, suffix string) bool {
	rest, ok := strings.CutSuffix(key, suffix)
	if !ok || len(rest) < 22+2 {
		return false
	}
	object := rest[:len(rest)-22]
	return strings.HasSuffix(object, ":") && strings.Contains(object, "{") && isRedissonHash(rest[len(rest)-22:])
}

// containsFolded reports whether word, which is lower case, is in s in any case.
func containsFolded(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
