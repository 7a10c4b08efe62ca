package formats

import "strings"

// familyDistributedLockReaders are the readers of DistributedLock's
// reader/writer lock: a set with an id for each.
// Source: madelson/DistributedLock Primitives/RedisReaderWriterLockPrimitives.cs.
var familyDistributedLockReaders = &family{
	name:    "distributedlock-readers",
	typ:     typeSet,
	noStand: noStandShared,
	key:     func(key string) bool { return strings.HasSuffix(key, ".readers") },
	recognise: func(s Sample) (Decoded, bool) {
		d, ok := distributedLockMembers(s)
		d.Mode = modeRead
		return d, ok && s.Type == typeSet
	},
	release: releaseDistributedLockMember,
}
