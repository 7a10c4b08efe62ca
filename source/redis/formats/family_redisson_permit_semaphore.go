package formats

import (
	_ "embed" // for the script
	"strconv"
	"strings"

	"github.com/locksteward/locksteward"
)

//go:embed family_redisson_permit_semaphore.lua
var redissonPermitLua string

// permitForever is how the score of a permit without an end is written.
const permitForever = 922337203685477

// familyRedissonPermitSemaphore is Redisson's RPermitExpirableSemaphore: the
// permits that are taken are members of a sorted set {name}:timeout, 16 random
// bytes each, with the time in ms at which the permit comes back; the free ones
// are a number under the name itself. The sorted set is what is listed.
// Source: org/redisson/RedissonPermitExpirableSemaphore.java.
var familyRedissonPermitSemaphore = &family{
	name:    "redisson-permit-semaphore",
	typ:     typeZSet,
	noStand: noStandBlocks,
	noUndo:  noUndoPermit,
	key:     func(key string) bool { return strings.HasSuffix(key, ":timeout") },
	recognise: func(s Sample) (Decoded, bool) {
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
	},
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
}

// formatScore writes a score so that Lua reads the same number.
func formatScore(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }
