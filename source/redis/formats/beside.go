package formats

import "strings"

// Ask names a key beside a lock that tells more of it: who waits, a fence.
type Ask struct {
	Key string
	// Type is what it must be: "list", "hash", "zset" or "string". A key of another type
	// counts as not there.
	Type string
}

// Beside is what was read of a key beside a lock.
type Beside struct {
	Size  int64  // members; bytes of a string, at most 64
	Value []byte // of a string
}

// Asks returns the keys to be read beside s before [Recognise]; nil for almost
// all, and never more than two. What was found goes into Sample.Beside by key; a
// key that is in another slot of a Cluster, and cannot be read, is not there.
func Asks(s Sample) []Ask {
	switch {
	case s.Type == typeHash && !s.TooLarge:
		return redissonAsks(s)
	case isWorkCounterName(s):
		return []Ask{{Key: s.Key + "_info", Type: typeHash}}
	case s.Type == typeString:
		return goRedisLockAsks(s)
	default:
		return nil
	}
}

// isWorkCounterName says that s may be the number of running jobs that
// gocraft/work (Harbor's job service) keeps as <namespace>:jobs:<job>:lock.
func isWorkCounterName(s Sample) bool {
	return whole(s) && strings.HasSuffix(s.Key, ":lock") && strings.Contains(s.Key, ":jobs:") &&
		len(s.Value) <= 6 && isDigits(string(s.Value))
}

// isWorkCounter says that s is that number: beside it stands a hash that counts
// by pool of workers. It never has a TTL, and nobody holds it.
// Source: gocraft/work redis.go (redisKeyJobsLock, redisKeyJobsLockInfo).
func isWorkCounter(s Sample) bool {
	_, counted := s.Beside[s.Key+"_info"]
	return counted && isWorkCounterName(s)
}
