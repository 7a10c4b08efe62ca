package dialect

import "github.com/locksteward/locksteward"

// familyRedlock4j is redlock4j: 20 random bytes in hex, in lower case. A SHA-1
// looks the same, so it is no more than likely.
// Source: tishun/redlock4j org/codarama/redlock4j/{Redlock,FairLock}.java.
var familyRedlock4j = stringFamily("redlock4j", nil, stringLock{
	kind:   "20 random bytes in hex, as redlock4j writes them",
	value:  func(s string) bool { return len(s) == 40 && isLowerHex(s) && isRandomHex(s) },
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})
