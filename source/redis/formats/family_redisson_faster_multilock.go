package formats

import (
	"maps"
	"strings"

	"github.com/locksteward/locksteward"
)

// familyRedissonFasterMultilock is Redisson's FasterMultiLock: one hash for a
// group of values, three fields for each value that is locked. A value's hash is
// 22 characters of base64; its expiry is in a field, so an entry may be dead
// while the key lives.
// Source: org/redisson/{RedissonFasterMultiLock,misc/Hash}.java.
var familyRedissonFasterMultilock = &family{
	name:    "redisson-faster-multilock",
	typ:     typeHash,
	noStand: noStandParts,
	recognise: func(s Sample) (Decoded, bool) {
		values, owners, ok := redissonMultilock(s)
		if !ok {
			return Decoded{}, false
		}
		d := Decoded{
			Confidence: locksteward.ConfidenceHigh,
			Identity:   lineage(s),
			Count:      int64(len(values)), // values locked
			Waiters:    -1,
			TokenKind:  redissonKind,
			RenewEvery: redissonRenewEvery,
		}
		if len(owners) == 1 {
			d.Holder = owners[0].holder()
		}
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) {
		_, owners, _ := redissonMultilock(s) // planRelease has recognised it
		if len(owners) > 1 {
			return Command{}, p.refuse("%d threads hold values of this group and nobody can say which of them is dead", len(owners))
		}
		args := append([]any{redissonChannel(s.Key), redissonFree}, fieldArgs(s)...)
		for i := 2; i < len(args); i += 2 {
			if strings.HasSuffix(args[i].(string), ":expire_time") {
				args[i+1] = p.volatile(args[i+1])
			}
		}
		return p.command(redissonLua, nil, args...), nil
	},
}

// redissonMultilock returns the locked values' hashes and the threads that hold
// them. Every value must have its three fields.
func redissonMultilock(s Sample) (values map[string]redissonOwner, owners []redissonOwner, ok bool) {
	if s.Type != typeHash || s.TooLarge || len(s.Fields) == 0 || len(s.Fields)%3 != 0 {
		return nil, nil, false
	}
	values = map[string]redissonOwner{}
	seen := map[redissonOwner]bool{}
	for field, value := range s.Fields {
		hash, rest, more := strings.Cut(field, ":")
		if !isRedissonHash(hash) {
			return nil, nil, false
		}
		if more {
			if !strings.HasSuffix(rest, ":expire_time") && !strings.HasSuffix(rest, ":lock_count") || !isDigits(value) {
				return nil, nil, false
			}
			continue
		}
		owner, known := redissonField(value)
		if !known {
			return nil, nil, false
		}
		values[hash] = owner
		if !seen[owner] {
			seen[owner] = true
			owners = append(owners, owner)
		}
	}
	for hash, owner := range values {
		own := hash + ":" + owner.String()
		_, expires := s.Fields[own+":expire_time"]
		_, counted := redissonCount(s.Fields[own+":lock_count"])
		if !expires || !counted {
			return nil, nil, false
		}
	}
	return values, owners, len(values)*3 == len(s.Fields)
}

// redissonStable returns the fields that a renewal does not change.
func redissonStable(s Sample) map[string]string {
	if s.TTL == locksteward.NoExpiry {
		return s.Fields
	}
	if _, _, ok := redissonMultilock(s); !ok {
		return s.Fields
	}
	stable := maps.Clone(s.Fields)
	maps.DeleteFunc(stable, func(field, _ string) bool { return strings.HasSuffix(field, ":expire_time") })
	return stable
}

// isRedissonHash knows Hash.hash128toBase64: 16 bytes without padding.
func isRedissonHash(s string) bool {
	return len(s) == 22 && every(s, func(c byte) bool { return isAlnum(c) || c == '+' || c == '/' })
}
