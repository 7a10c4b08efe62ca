package formats

// familyDistributedLockSemaphore is DistributedLock's semaphore: a sorted set
// with an id for each ticket and the time in ms at which it runs out.
// Source: madelson/DistributedLock Primitives/RedisSemaphorePrimitive.cs.
var familyDistributedLockSemaphore = &family{
	name:    "distributedlock-semaphore",
	typ:     typeZSet,
	noStand: noStandShared,
	recognise: func(s Sample) (Decoded, bool) {
		d, ok := distributedLockMembers(s)
		return d, ok && s.Type == typeZSet
	},
	release: releaseDistributedLockMember,
}
