package formats

// familyRedissonRWWrite is Redisson's ReadWriteLock held for writing: `mode` and
// one field <uuid>:<thread>:write, beside which the same thread may read.
// Source: org/redisson/RedissonWriteLock.java.
var familyRedissonRWWrite = &family{
	name:   "redisson-rw-write",
	typ:    typeHash,
	stand:  standHash(":write", "mode", modeWrite),
	sleeps: true,
	recognise: func(s Sample) (Decoded, bool) {
		rw, ok := redissonRWOf(s)
		if !ok || rw.mode != modeWrite {
			return Decoded{}, false
		}
		d := redissonDecoded(s, rw.writer, rw.writes)
		d.Mode = modeWrite
		return d, true
	},
	release: func(s Sample, p plan) (Command, error) { return releaseRedissonRW(s, p, redissonFreeAll) },
}
