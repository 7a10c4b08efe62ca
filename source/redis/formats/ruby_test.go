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

// An auxiliary key is never a lock, and its format knows the lock that it belongs to.
func TestAuxiliaryKeysOfPythonRubyAndPHP(t *testing.T) {
	t.Parallel()
	const digest = "uniquejobs:9f86d081884c7d659a2feaa0c55ad015"
	for _, tt := range []struct {
		format    string
		key, lock string
		ok        bool
	}{
		{"python-redis-lock", "lock-signal:a", "lock:a", true},
		{"python-redis-lock", "lock-signal:", "", false},
		{"python-redis-lock", "lock:a", "", false},
		{"redbeat", "redbeat::schedule", "", true},
		{"redbeat", "redbeat::lock", "", false},
		{"sidekiq-unique-v8", digest, digest + ":LOCKED", true},
		{"sidekiq-unique-v8", digest + ":QUEUED", digest + ":LOCKED", true},
		{"sidekiq-unique-v8", digest + ":RUN:PRIMED", digest + ":RUN:LOCKED", true},
		{"sidekiq-unique-v8", digest + ":INFO", digest + ":LOCKED", true},
		{"sidekiq-unique-v8", digest + ":LOCKED", "", false},
		{"sidekiq-unique-v8", "uniquejobs:digests", "", true},
		{"sidekiq-unique-v8", "uniquejobs:reaper:last", "", true},
		{"sidekiq-unique-v8", "uniquejobs:mine", "", false},
		{"sidekiq-unique-v8", "digests", "", false},
		{"ruby-redis-semaphore", "SEMAPHORE:a:AVAILABLE", "", true},
		{"ruby-redis-semaphore", "SEMAPHORE:a:release_locks", "", true},
		{"ruby-redis-semaphore", "SEMAPHORE:a:GRABBED", "", false},
		{"ruby-redis-semaphore", "a:AVAILABLE", "", false},
		{"symfony-lock", "symfony_check_support_time", "", true},
		{"symfony-lock", "invoice", "", false},
	} {
		lock, ok := byName[tt.format].auxiliaryKey(tt.key)
		if lock != tt.lock || ok != tt.ok {
			t.Errorf("%s: auxiliaryKey(%q) = %q, %t, want %q, %t", tt.format, tt.key, lock, ok, tt.lock, tt.ok)
		}
	}
}
