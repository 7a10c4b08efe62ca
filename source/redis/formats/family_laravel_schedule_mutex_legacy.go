package formats

import (
	"strings"

	"github.com/locksteward/locksteward"
)

// familyLaravelScheduleMutexLegacy is the scheduler's mutex up to Laravel 10:
// the constant true under …framework/schedule-<sha1>[HHmm], a day or an hour.
// Source: laravel/framework src/Illuminate/Console/Scheduling/Cache{Event,Scheduling}Mutex.php.
var familyLaravelScheduleMutexLegacy = stringFamily("laravel-schedule-mutex-legacy", isLaravelScheduleKey, stringLock{
	kind: "a one-digit number", value: func(text string) bool { return text == "1" },
	origin: originShared, confidence: locksteward.ConfidenceHigh,
	refuse: "its value is the same for every holder, so nobody can tell this run from the next",
})

// isLaravelScheduleKey knows …framework/schedule-<sha1>, with the hour and
// minute behind it for onOneServer.
func isLaravelScheduleKey(key string) bool {
	_, digest, ok := cutLast(key, "framework/schedule-")
	if !ok || len(digest) != 40 && len(digest) != 44 || !isLowerHex(digest[:40]) {
		return false
	}
	return strings.Trim(digest[40:], "0123456789") == ""
}
