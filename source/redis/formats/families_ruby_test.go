package formats

import (
	"testing"
	"time"
)

func TestEpochOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		at   time.Time
		fine bool
	}{
		"1794970000":            {time.Unix(1794970000, 0), false},
		"1794970000.5":          {time.Unix(1794970000, 500_000_000), false},
		"1794970000.123":        {time.Unix(1794970000, 123_000_000), false},
		"1794970000.1234567":    {time.Unix(1794970000, 123_456_700), true},
		"1794970000.1234567891": {time.Unix(1794970000, 123_456_789), true},
	} {
		at, fine, ok := epochOf(text)
		if !ok || !at.Equal(want.at) || fine != want.fine {
			t.Errorf("epochOf(%q) = %s, %t, %t, want %s, %t", text, at, fine, ok, want.at.UTC(), want.fine)
		}
	}
	for _, text := range []string{"", "1", ".", "1794970000.", ".5", "179497000", "17949700000", "-179497000", "1794970000.5.5", "1794970000e5", "1794970000.123456789012345678", "0000000000", "9999999999"} {
		if at, _, ok := epochOf(text); ok {
			t.Errorf("epochOf(%q) = %s, want none", text, at)
		}
	}
}

// What stands beside the locks of a family is never a lock, and says whose it is.
func TestCompanionsOfFamilies(t *testing.T) {
	t.Parallel()
	const digest = "uniquejobs:9f86d081884c7d659a2feaa0c55ad015"
	for _, tt := range []struct {
		f         *family
		key, lock string
		ok        bool
	}{
		{familyPythonRedisLock, "lock-signal:a", "lock:a", true},
		{familyPythonRedisLock, "lock-signal:", "", false},
		{familyPythonRedisLock, "lock:a", "", false},
		{familyRedbeat, "redbeat::schedule", "", true},
		{familyRedbeat, "redbeat::lock", "", false},
		{familySidekiqUniqueV8, digest, digest + ":LOCKED", true},
		{familySidekiqUniqueV8, digest + ":QUEUED", digest + ":LOCKED", true},
		{familySidekiqUniqueV8, digest + ":RUN:PRIMED", digest + ":RUN:LOCKED", true},
		{familySidekiqUniqueV8, digest + ":INFO", digest + ":LOCKED", true},
		{familySidekiqUniqueV8, digest + ":LOCKED", "", false},
		{familySidekiqUniqueV8, "uniquejobs:digests", "", true},
		{familySidekiqUniqueV8, "uniquejobs:reaper:last", "", true},
		{familySidekiqUniqueV8, "uniquejobs:mine", "", false},
		{familySidekiqUniqueV8, "digests", "", false},
		{familyRubyRedisSemaphore, "SEMAPHORE:a:AVAILABLE", "", true},
		{familyRubyRedisSemaphore, "SEMAPHORE:a:release_locks", "", true},
		{familyRubyRedisSemaphore, "SEMAPHORE:a:GRABBED", "", false},
		{familyRubyRedisSemaphore, "a:AVAILABLE", "", false},
		{familySymfonyLock, "symfony_check_support_time", "", true},
		{familySymfonyLock, "invoice", "", false},
	} {
		lock, ok := tt.f.companion(tt.key)
		if lock != tt.lock || ok != tt.ok {
			t.Errorf("%s: companion(%q) = %q, %t, want %q, %t", tt.f.name, tt.key, lock, ok, tt.lock, tt.ok)
		}
	}
}
