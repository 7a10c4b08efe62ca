package formats

import "github.com/locksteward/locksteward"

// familyRedlock4j is redlock4j: 20 random bytes in hex, in lower case. Others
// write 40 hex digits too (a SHA-1): it is named only where the key says redlock4j.
// Source: tishun/redlock4j org/codarama/redlock4j/{Redlock,FairLock}.java.
var familyRedlock4j = stringFamily("redlock4j", named("redlock4j"), stringLock{
	kind:   "20 random bytes in hex, as redlock4j writes them",
	value:  func(s string) bool { return len(s) == 40 && isLowerHex(s) && isRandomHex(s) },
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})
