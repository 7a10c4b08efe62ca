package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyPotteryRedlock is pottery's Redlock: a UUID under redlock:<key>, which
// is RedLock.net's layout too, so only keys that name the library are claimed.
// Source: brainix/pottery pottery/{redlock,base}.py.
var familyPotteryRedlock = stringFamily("pottery-redlock", func(key string) bool {
	return strings.HasPrefix(key, "redlock:") && namesPottery(key)
}, stringLock{
	kind: "a UUID, under a key that names pottery", value: isRandomUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})

var namesPottery = named("pottery")
