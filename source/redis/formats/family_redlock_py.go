package formats

import (
	"github.com/locksteward/locksteward"
)

// familyRedlockPy is redlock-py: 22 random letters and digits under any name.
// Others write those too: it is named only where the key says redlock-py.
// Source: SPSCommerce/redlock-py redlock/__init__.py.
var familyRedlockPy = stringFamily("redlock-py", named("redlock-py"), stringLock{
	kind: "22 random letters and digits, as redlock-py writes them",
	value: func(text string) bool {
		if len(text) != 22 || !every(text, isAlnum) {
			return false
		}
		v := varietyOf(text)
		return v.lower && v.upper && isRandomAlnum(text)
	},
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})
