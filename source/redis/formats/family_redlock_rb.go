package formats

import "github.com/locksteward/locksteward"

// familyRedlockRB is redlock-rb: a UUID under a name as given. Nothing in the
// value is its own, so only keys that name the library are claimed.
// Source: leandromoreira/redlock-rb lib/redlock/{client,scripts}.rb.
var familyRedlockRB = stringFamily("redlock-rb", named("redlock-rb"), stringLock{
	kind: "a UUID, under a key that names redlock-rb", value: isRandomUUID,
	origin: originAcquisition, confidence: locksteward.ConfidenceMedium,
})
