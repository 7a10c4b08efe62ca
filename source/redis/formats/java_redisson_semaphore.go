package formats

import (
	_ "embed" // for the script
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed redisson_permit_semaphore.lua
var redissonPermitLua string

// redissonSemaphoreFormats are Redisson's semaphores and its latch.
var redissonSemaphoreFormats = []*Format{
	// RPermitExpirableSemaphore: the permits that are taken are members of a sorted
	// set {name}:timeout, 16 random bytes each, with the time in ms at which the
	// permit comes back; the free ones are a number under the name itself. The
	// sorted set is what is listed.
	// Source: RedissonPermitExpirableSemaphore.java.
	{
		Name:    "redisson-permit-semaphore",
		Type:    typeZSet,
		matches: func(key string) bool { return strings.HasSuffix(key, ":timeout") },
		names:   []namePattern{{suffix: "}:timeout"}},
		decode:  decodeRedissonPermits,
		Facts:   locksteward.LibraryFacts{NoTTLByDesign: true},
		release: func(s Sample, p plan) (Command, error) {
			name := redissonBare(strings.TrimSuffix(s.Key, ":timeout"))
			switch {
			case len(s.Members) > 1:
				return Command{}, p.refuse("%d permits are taken and nobody can say which of them is dead", len(s.Members))
			case !sameSlot(s.Key, name):
				return Command{}, p.refuse("the number of free permits is in another slot of a Cluster, so one script cannot give this one back")
			}
			permit := s.Members[0]
			return p.command(redissonPermitLua, []string{name},
				redissonPrefixed("redisson_sc", name), permit.Name, p.volatile(formatScore(permit.Score))), nil
		},
		NoPlaceholder: noPlaceholderBlocks,
		NoUndo:        noUndoPermit,
		Grants: func(glob string) (keys, channels []string) {
			name, ok := strings.CutSuffix(glob, ":timeout")
			if !ok && strings.Contains(glob, "{") {
				name, ok = strings.CutSuffix(glob, ":*")
			}
			if !ok {
				return nil, nil
			}
			if strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}") {
				name = name[1 : len(name)-1]
			}
			return []string{name}, redissonGlobs("redisson_sc", name)
		},
	},
	// RSemaphore: a number of free permits that names nobody. Any other counter
	// looks the same, so it is known by its name only: `{map}:<hash>:semaphore`, or,
	// with low confidence, one that says semaphore.
	// Source: RedissonSemaphore.java.
	{
		Name:    "redisson-semaphore",
		Type:    typeString,
		matches: func(key string) bool { return containsFolded(key, "semaphore") },
		decode: func(s Sample) (Decoded, bool) {
			return redissonCounter(s, ":semaphore", "a number of free permits, which names no holder")
		},
		Facts: locksteward.LibraryFacts{NoTTLByDesign: true},
		Never: "its value is a number of free permits and names no holder; without the key nobody would get in",
	},
	// RCountDownLatch: how often it has to be counted down until it opens. Known by
	// its name, as the semaphore.
	// Source: RedissonCountDownLatch.java.
	{
		Name:    "redisson-latch",
		Type:    typeString,
		matches: func(key string) bool { return containsFolded(key, "latch") || containsFolded(key, "countdown") },
		names:   []namePattern{{suffix: ":countdownlatch"}},
		decode: func(s Sample) (Decoded, bool) {
			return redissonCounter(s, ":countdownlatch", "a count, which names no holder")
		},
		Facts: locksteward.LibraryFacts{NoTTLByDesign: true},
		Never: "its value is a count that others have yet to count down, and names no holder",
	},
}

// permitForever is how the score of a permit without an end is written.
const permitForever = 922337203685477

func decodeRedissonPermits(s Sample) (Decoded, bool) {
	if s.Type != typeZSet || s.TooLarge || len(s.Members) == 0 {
		return Decoded{}, false
	}
	for _, m := range s.Members {
		if len(m.Name) != 16 || isPrintableText(m.Name) || m.Score < 1e12 || m.Score > permitForever {
			return Decoded{}, false
		}
	}
	return Decoded{
		Confidence: locksteward.ConfidenceHigh,
		Identity:   locksteward.IdentityStrong,
		Count:      int64(len(s.Members)), // permits taken
		Waiters:    -1,
		TokenKind:  "16 random bytes for each permit",
	}, true
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
