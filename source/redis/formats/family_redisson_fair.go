package formats

import _ "embed" // for the script

//go:embed family_redisson_fair.lua
var redissonFairLua string

// familyRedissonFair is Redisson's fair lock: the hash of a plain one, and those
// who wait in a list, in their order, with the time until which each is believed
// in a sorted set. Neither has a TTL. Each waiter listens on a channel of its
// own. Known by its queue, so only while somebody waits, or by the name of a
// lock of one element (`{map}:<hash>:fairlock`).
// Source: org/redisson/RedissonFairLock.java.
var familyRedissonFair = &family{
	name:   "redisson-fair",
	typ:    typeHash,
	stand:  standHash(""),
	sleeps: true,
	recognise: func(s Sample) (Decoded, bool) {
		d, ok := redissonHash(s)
		queue, waits := s.Beside[redissonQueue(s.Key)]
		if !ok || !waits && !isRedissonElement(s.Key, ":fairlock") {
			return Decoded{}, false
		}
		d.Waiters = int(queue.Size)
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) {
		queue, timeout := redissonQueue(s.Key), redissonTimeout(s.Key)
		if !sameSlot(s.Key, queue, timeout) {
			return Command{}, p.refuse("its queue is in another slot of a Cluster, so one script cannot wake who waits")
		}
		args := append([]any{redissonChannel(s.Key), redissonFree}, fieldArgs(s)...)
		return p.command(redissonFairLua, []string{queue, timeout}, args...), nil
	},
	companion: prefixedCompanion("redisson_lock_queue:", "redisson_lock_timeout:"),
}

// prefixedCompanion knows Redisson's <prefix>{name} and <prefix>name.
func prefixedCompanion(prefixes ...string) func(string) (string, bool) {
	return func(key string) (string, bool) {
		for _, prefix := range prefixes {
			if prefixed(prefix)(key) {
				return redissonBare(key[len(prefix):]), true
			}
		}
		return "", false
	}
}
