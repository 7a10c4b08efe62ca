package formats

import "github.com/locksteward/locksteward"

// familyRedisMutex is kenn/redis-mutex: the time when the lock ends, in seconds
// by the holder's clock, under RedisMutex:<key>, never with a TTL.
// Source: kenn/redis-mutex lib/redis_mutex.rb.
var familyRedisMutex = func() *family {
	f := stringFamily("redis-mutex", prefixed("RedisMutex:"), stringLock{
		kind:   "the time when the lock ends, which names no holder",
		value:  func(text string) bool { _, _, ok := epochOf(text); return ok },
		origin: originTime, confidence: locksteward.ConfidenceHigh,
	})
	f.person = "its value says by the holder's clock when it ends, and then the next one takes it by itself: " +
		"before that time the holder counts on it, after it a release frees nothing"
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		if _, fine, _ := epochOf(s.plain()); ok && fine {
			d.Identity = locksteward.IdentityStrong // each acquisition has a time of its own
		}
		return d, ok
	}
	return f
}()
