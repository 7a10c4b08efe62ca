package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyIoredisLock is ioredis-lock: one UUID per Lock object under any name.
// UUIDs are everybody's, also those with a time (version 1) of its version 4.0.0, so
// that it is named only where the key says ioredis-lock. The time is that of the
// object, not of the lock.
// Source: microfleet/ioredis-lock src/lock.js.
var familyIoredisLock = ioredisLock()

func ioredisLock() *family {
	f := bare(stringFamily("ioredis-lock", named("ioredis-lock"), stringLock{
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
		return d, timed || isRandomUUID(text)
	}
	return f
}
