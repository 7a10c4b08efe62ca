package formats

// familyRedissonRWRead is Redisson's ReadWriteLock held for reading: `mode` and
// one field <uuid>:<thread> for each reader.
// Source: org/redisson/RedissonReadLock.java.
var familyRedissonRWRead = &family{
	name:    "redisson-rw-read",
	typ:     typeHash,
	noStand: noStandShared,
	recognise: func(s Sample) (Decoded, bool) {
		rw, ok := redissonRWOf(s)
		if !ok || rw.mode != modeRead {
			return Decoded{}, false
		}
		var (
			reader redissonOwner
			holds  int64
		)
		for owner, count := range rw.readers {
			reader, holds = owner, holds+count
		}
		d := redissonDecoded(s, reader, holds)
		if len(rw.readers) > 1 {
			d.Holder = redissonOwner{}.holder() // several: none of them is the one
		}
		d.Mode = modeRead
		return d, true
	},
	release:   func(s Sample, p plan) (Command, error) { return releaseRedissonRW(s, p, redissonFree) },
	companion: redissonHoldKey,
}
