package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyAiocacheRedlock is aiocache's RedLock: a UUID under
// <namespace><key>-lock, always with a lease.
// Source: aio-libs/aiocache aiocache/lock.py.
var familyAiocacheRedlock = func() *family {
	f := stringFamily("aiocache-redlock", func(key string) bool { return len(key) > len("-lock") && strings.HasSuffix(key, "-lock") }, stringLock{
		kind: "a UUID under a key that ends in -lock, as aiocache writes them", value: isRandomUUID,
		origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
	})
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		if s.TTL == locksteward.NoExpiry {
			return Decoded{}, false
		}
		return decode(s)
	}
	return f
}()
