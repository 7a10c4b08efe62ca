package formats

// golangFamilies are the lock libraries of Go.
var golangFamilies = []*family{
	familyRueidislock, familyValkeylock,
	familyAsynqUnique, familyAsynqLease,
	familyDaprLock,
	familyGoRedisLockReentrant, familyGoRedisLockRW,
	familyRedsync, familyBSMRedislock,
	// Any text under a name in braces: last of those that know the name.
	familyGoRedisLockFair,
}

// bare narrows a family of string locks to values that stand in Redis as the
// library made them: those of Go and Node.js put no serialisation around.
func bare(f *family) *family {
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		return d, ok && len(unwrap(string(s.Value))) == len(s.Value)
	}
	return f
}
