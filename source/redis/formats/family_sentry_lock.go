package formats

import "github.com/locksteward/locksteward"

// familySentryLock is Sentry's lock manager: one UUID per process, in hex, under
// l:<key>.
// Source: getsentry/sentry src/sentry/utils/locking/backends/redis.py.
var familySentryLock = stringFamily("sentry-lock", prefixed("l:"), stringLock{
	kind: "a UUID of a Sentry process",
	value: func(text string) bool {
		if len(text) != 32 || !isLowerHex(text) {
			return false
		}
		return isRandomUUID(text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:])
	},
	origin: originProcess, confidence: locksteward.ConfidenceMedium,
})
