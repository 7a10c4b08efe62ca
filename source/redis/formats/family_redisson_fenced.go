package formats

import (
	_ "embed" // for the script
	"strconv"
)

//go:embed family_redisson_fenced.lua
var redissonFencedLua string

// familyRedissonFenced is Redisson's FencedLock: the hash of a plain lock, and a
// counter without TTL that grows with every acquisition and never goes.
// Source: org/redisson/RedissonFencedLock.java.
var familyRedissonFenced = &family{
	name:   "redisson-fenced",
	typ:    typeHash,
	stand:  standHash(""),
	sleeps: true,
	recognise: func(s Sample) (Decoded, bool) {
		d, ok := redissonHash(s)
		fence, err := strconv.ParseInt(string(s.Beside[redissonToken(s.Key)].Value), 10, 64)
		if !ok || err != nil || fence <= 0 {
			return Decoded{}, false
		}
		d.Fence = fence
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) {
		args := append([]any{redissonChannel(s.Key), redissonFree, p.decoded.Fence}, fieldArgs(s)...)
		return p.command(redissonFencedLua, []string{redissonToken(s.Key)}, args...), nil
	},
	// The counter belongs to all holds of the lock and must outlive each.
	companion: func(key string) (string, bool) { return "", prefixed("redisson_lock_token:")(key) },
}
