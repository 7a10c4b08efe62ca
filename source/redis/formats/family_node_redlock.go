package formats

import (
	"github.com/locksteward/locksteward"
)

// familyNodeRedlock is node-redlock 4 and 5 and @sesamecare-oss/redlock: 16
// random bytes in hex, under any name, on several keys for several resources and on
// each server of the quorum, always with a TTL. A UUID without dashes is as
// long: where the name does not say redlock it is left to whoever writes those.
// Source: mike-marcacci/node-redlock redlock.js (_random), src/index.ts; sesamecare/redlock src/index.ts.
var familyNodeRedlock = nodeRedlock()

func nodeRedlock() *family {
	f := bare(stringFamily("node-redlock", named("redlock"), stringLock{
		kind:       "16 random bytes in hex, as node-redlock writes them",
		value:      func(text string) bool { return isHex32(text) && isRandomHex(text) },
		origin:     originAcquisition,
		confidence: locksteward.ConfidenceMedium,
	}))
	decode := f.recognise
	f.recognise = func(s Sample) (Decoded, bool) {
		d, ok := decode(s)
		return d, ok && s.TTL != locksteward.NoExpiry
	}
	return f
}
