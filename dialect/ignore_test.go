package dialect

import (
	"regexp"
	"testing"
)

// helpers are the patterns that IgnoreKey stands for.
var helpers = []*regexp.Regexp{
	regexp.MustCompile(`(?s)^redisson_unlock_latch:.*:[0-9a-f]{32}$`),
	regexp.MustCompile(`^redisson_lock_(queue|timeout|token):`),
	regexp.MustCompile(`:rwlock_timeout:[0-9]+$`),
	regexp.MustCompile(`^lock-signal:`),
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
	"uniquejobs:9f86d081884c7d659a2feaa0c55ad015":                      false,
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

func TestIgnoreKey(t *testing.T) {
	t.Parallel()
	for key, want := range helperKeys {
		if got := IgnoreKey(key); got != want {
			t.Errorf("IgnoreKey(%q) = %t, want %t", key, got, want)
		}
	}
}

func FuzzIgnoreKey(f *testing.F) {
	for key := range helperKeys {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		want := false
		for _, re := range helpers {
			want = want || re.MatchString(key)
		}
		if got := IgnoreKey(key); got != want {
			t.Errorf("IgnoreKey(%q) = %t, want %t", key, got, want)
		}
	})
}
