package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyRedsync is redsync 4, gocron-redis-lock too: base64 of 16 random bytes,
// fresh for each acquisition, under any name and on each server of the quorum. Others
// write those too: it is named only where the key says redsync.
// Source: go-redsync/redsync mutex.go (genValue).
var familyRedsync = bare(stringFamily("redsync", named("redsync"), stringLock{
	kind: "random base64, as redsync writes it",
	value: func(text string) bool {
		return len(text) == 24 && strings.HasSuffix(text, "==") && isRandomBase64(text)
	},
	origin:     originAcquisition,
	confidence: locksteward.ConfidenceMedium,
}))
