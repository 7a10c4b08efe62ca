package formats

import (
	"regexp"
	"testing"
)

// helpers are the patterns that AuxiliaryKey knows at least.
var helpers = []*regexp.Regexp{
	regexp.MustCompile(`(?s)^redisson_unlock_latch:.*:[0-9a-f]{32}$`),
	regexp.MustCompile(`(?s)^redisson_lock_(queue|timeout|token):.`),
	regexp.MustCompile(`:rwlock_timeout:[0-9]+$`),
	regexp.MustCompile(`(?s)^lock-signal:.`),
	regexp.MustCompile(`^symfony_check_support_time$`),
	regexp.MustCompile(`:(stalled|stalled-check)$`),
	regexp.MustCompile(`(?s)^bq:.*:(stallBlock|stalling)$`),
	regexp.MustCompile(`^uniquejobs:(digests|expiring_digests|orphaned_digests|changelog|reaper|live|dead)(:|$)`),
	regexp.MustCompile(`^uniquejobs:[0-9a-f]{32,64}(:RUN)?:(QUEUED|PRIMED|INFO)$`),
	regexp.MustCompile(`^redbeat::(schedule|statics)$`),
}

var helperKeys = map[string]bool{
	"redisson_unlock_latch:{order}:0f8fad5bd9cb469fa16570867728950e":   true,
	"redisson_lock_queue:{order}":                                      true,
	"redisson_lock_timeout:order{1}":                                   true,
	"redisson_lock_token:{order}":                                      true,
	"{order}:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37:rwlock_timeout:1": true,
	"lock-signal:report":                                               true,
	"symfony_check_support_time":                                       true,
	"bull:mail:stalled":                                                true,
	"bull:mail:stalled-check":                                          true,
	"bq:mail:stallBlock":                                               true,
	"uniquejobs:digests":                                               true,
	"uniquejobs:9f86d081884c7d659a2feaa0c55ad015:QUEUED":               true,
	"uniquejobs:9f86d081884c7d659a2feaa0c55ad015:RUN:INFO":             true,
	"redbeat::schedule":                                                true,
	"uniquejobs:9f86d081884c7d659a2feaa0c55ad015:LOCKED":               false,
	"uniquejobs:9f86d081884c7d659a2feaa0c55ad015":                      true, // beside :LOCKED
	"redbeat::lock":                                                    false,
	"bull:mail:17:lock":                                                false,
	"lock:order:42":                                                    false,
	"redisson_lock__channel":                                           false,
	"redisson_unlock_latch:{order}":                                    false,
	"redisson_lock:installed":                                          false,
	"":                                                                 false,
	"bq:stallBlock":                                                    false,
	"order:rwlock_timeout:x":                                           false,
	"redisson_x:rwlock_timeout:1":                                      true,
	"uniquejobs:dead:1":                                                true,
	"uniquejobs:deadline":                                              false,
	"lock\n:stalled":                                                   true,
	"uniquejobs:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0:INFO": false,
}

func TestAuxiliaryKey(t *testing.T) {
	t.Parallel()
	for key, want := range helperKeys {
		if name, _, got := AuxiliaryKey(key); got != want || got && name == "" {
			t.Errorf("AuxiliaryKey(%q) = %q, %t, want %t", key, name, got, want)
		}
	}
	for key, want := range map[string][2]string{
		"redisson_unlock_latch:{order}:0f8fad5bd9cb469fa16570867728950e":   {"redisson", "order"},
		"redisson_lock_queue:{order}":                                      {"redisson-fair", "order"},
		"redisson_lock_timeout:order{1}":                                   {"redisson-fair", "order{1}"},
		"redisson_lock_queue:{a}":                                          {"redisson-fair", "a"},
		"redisson_lock_token:{order}":                                      {"redisson-fenced", ""},
		"{order}:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37:rwlock_timeout:1": {"redisson-rw-read", "order"},
		"o{1}:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17:37:rwlock_timeout:2":    {"redisson-rw-read", "o{1}"},
		"lock-signal:report":                                               {"python-redis-lock", "lock:report"},
	} {
		if name, lock, ok := AuxiliaryKey(key); !ok || name != want[0] || lock != want[1] {
			t.Errorf("AuxiliaryKey(%q) = %q, %q, %t, want %q", key, name, lock, ok, want)
		}
	}
}

func FuzzAuxiliaryKey(f *testing.F) {
	for key := range helperKeys {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		_, lock, got := AuxiliaryKey(key)
		for _, re := range helpers {
			if re.MatchString(key) && !got {
				t.Errorf("AuxiliaryKey(%q) = %t, want true", key, got)
			}
		}
		if lock == key && key != "" {
			t.Errorf("%q is a helper of itself", key)
		}
		MayBeLock(key)
	})
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"redisson_lock_queue:{a}": "redisson_lock_timeout:{a}", "redisson_lock_timeout:{a}": "redisson_lock_timeout:{a}",
		"lock-signal:a": "", "": "",
	} {
		if got := Deadlines(key); got != want {
			t.Errorf("Deadlines(%q) = %q, want %q", key, got, want)
		}
	}
}
