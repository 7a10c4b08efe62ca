package dialect

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyRedlockPy is redlock-py: 22 random letters and digits under any name.
// What could be the text of 16 bytes in base64, whose last character is one of
// A, Q, g and w, is left to bsm/redislock.
// Source: SPSCommerce/redlock-py redlock/__init__.py.
var familyRedlockPy = stringFamily("redlock-py", nil, stringLock{
	kind: "22 random letters and digits, as redlock-py writes them",
	value: func(text string) bool {
		if len(text) != 22 || !every(text, isAlnum) || strings.IndexByte("AQgw", text[21]) >= 0 {
			return false
		}
		v := varietyOf(text)
		return v.lower && v.upper && isRandomAlnum(text)
	},
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})
