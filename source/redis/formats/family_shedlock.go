package formats

import (
	"strings"
	"time"

	"github.com/locksteward/locksteward"
)

// familyShedLock is ShedLock with a Redis provider: the value says when the lock
// was taken and by which host. Its key is job-lock:<environment>:<name> by
// default, and the value alone is particular enough.
// Source: lukas-krecan/ShedLock InternalRedisLockProvider.java.
var familyShedLock = stringFamily("shedlock", nil, stringLock{
	kind:       "time, host and UUID, as ShedLock writes them",
	value:      func(s string) bool { _, _, ok := shedLock(s); return ok },
	origin:     originAcquisition,
	confidence: locksteward.ConfidenceHigh,
	holder:     func(s string) locksteward.Holder { _, host, _ := shedLock(s); return locksteward.Holder{Host: host} },
	acquired:   func(s string) time.Time { at, _, _ := shedLock(s); return at },
})

// shedLock splits ADDED:<RFC 3339 with ms>@<host>:<uuid>.
func shedLock(s string) (at time.Time, host string, ok bool) {
	rest, ok := strings.CutPrefix(s, "ADDED:")
	stamp, rest, found := strings.Cut(rest, "@")
	if !ok || !found || len(rest) < uuidLength+2 {
		return time.Time{}, "", false
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	i := len(rest) - uuidLength
	if err != nil || rest[i-1] != ':' || !isUUID(rest[i:]) || at.Before(firstTime) || at.After(lastTime) {
		return time.Time{}, "", false
	}
	return at.UTC(), rest[:i-1], true
}
