package dialect

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyNodeRedlock is node-redlock 4 and 5 and @sesamecare-oss/redlock: 16
// random bytes in hex, under any name, on several keys for several resources and
// on each server of the quorum, always with a TTL. A UUID without dashes is as
// long: where the name does not say redlock it is left to whoever writes those.
// Source: mike-marcacci/node-redlock redlock.js (_random), src/index.ts; sesamecare/redlock src/index.ts.
var familyNodeRedlock = nodeRedlock()

func nodeRedlock() *family {
	says := named("redlock")
	f := bare(stringFamily("node-redlock", nil, stringLock{
		kind:       "16 random bytes in hex, as node-redlock writes them",
		value:      func(text string) bool { return isHex32(text) && isRandomHex(text) },
		origin:     originAcquisition,
		confidence: locksteward.ConfidenceMedium,
	}))
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		return d, ok && s.TTL != locksteward.NoExpiry && (says(s.Key) || !isUUIDHex(string(s.Value)))
	}
	return f
}

// isUUIDHex says that 32 hex digits have the marks of a UUID of a version in use:
// of random ones, one in twenty has.
func isUUIDHex(text string) bool {
	return strings.IndexByte("147", text[12]) >= 0 && strings.IndexByte("89ab", text[16]) >= 0
}
