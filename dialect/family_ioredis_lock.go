package dialect

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyIoredisLock is ioredis-lock: one UUID per Lock object under any name.
// Version 4.0.0 writes those with a time (version 1), which hardly anything else
// puts into a lock; drawn ones are everybody's, and are claimed only where the
// name says ioredis-lock. The time is that of the object, not of the lock.
// Source: microfleet/ioredis-lock src/lock.js.
var familyIoredisLock = ioredisLock()

func ioredisLock() *family {
	says := named("ioredis-lock")
	f := bare(stringFamily("ioredis-lock", nil, stringLock{
		kind:       "a UUID of an ioredis-lock object",
		value:      isLowerUUID,
		origin:     originProcess,
		confidence: locksteward.ConfidenceMedium,
	}))
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		if !ok {
			return Decoded{}, false
		}
		text := string(s.Value)
		_, timed := timeOfUUIDHex(strings.ReplaceAll(text, "-", ""))
		return d, timed || isRandomUUID(text) && says(s.Key)
	}
	return f
}
