package formats

import (
	_ "embed" // for the script
	"strings"
)

// Redisson is the name of the dialect of Redisson's RLock (Java).
const Redisson = "redisson"

//go:embed family_redisson.lua
var redissonLua string

// familyRedisson is Redisson's plain lock: a hash with one field <client
// uuid>:<thread id> and the re-entrancy count as its value. Spin locks,
// non-reentrant locks and the members of a MultiLock are the same. Fair locks
// with nobody waiting, too: then there is nobody to be woken in another way.
// Source: org/redisson/{RedissonLock,RedissonSpinLock,RedissonMultiLock}.java.
var familyRedisson = &family{
	name:      Redisson,
	typ:       typeHash,
	recognise: redissonHash,
	stand:     standHash(""),
	sleeps:    true,
	release: func(s Sample, p plan) (Command, error) {
		args := append([]any{redissonChannel(s.Key), redissonFree}, fieldArgs(s)...)
		return p.command(redissonLua, nil, args...), nil
	},
	companion: func(key string) (string, bool) {
		rest, ok := strings.CutPrefix(key, "redisson_unlock_latch:")
		name, id, cut := cutLast(rest, ":")
		return redissonBare(name), ok && cut && isHex32(id)
	},
}
