package dialect

import "strings"

// IgnoreKey says whether key is a helper of a known lock library and never a
// lock itself, though its name speaks of one: queues, signals, latches,
// counters. Such keys are not listed and never judged.
func IgnoreKey(key string) bool {
	switch {
	case strings.HasPrefix(key, "lock-signal:"), // python-redis-lock
		key == "symfony_check_support_time",
		key == "redbeat::schedule", key == "redbeat::statics",
		strings.HasSuffix(key, ":stalled"), strings.HasSuffix(key, ":stalled-check"): // Bull, BullMQ
		return true
	case isRedissonHelper(key), isSidekiqHelper(key):
		return true
	}
	rest, ok := strings.CutPrefix(key, "bq:") // bee-queue
	return ok && (strings.HasSuffix(rest, ":stallBlock") || strings.HasSuffix(rest, ":stalling"))
}

func isRedissonHelper(key string) bool {
	for _, prefix := range []string{"redisson_lock_queue:", "redisson_lock_timeout:", "redisson_lock_token:"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	if rest, ok := strings.CutPrefix(key, "redisson_unlock_latch:"); ok {
		_, id, ok := cutLast(rest, ":")
		return ok && len(id) == 32 && isLowerHex(id)
	}
	_, hold, ok := cutLast(key, ":rwlock_timeout:") // one per read hold
	return ok && isDigits(hold)
}

func isSidekiqHelper(key string) bool {
	rest, ok := strings.CutPrefix(key, "uniquejobs:")
	if !ok {
		return false
	}
	first, _, _ := strings.Cut(rest, ":")
	switch first {
	case "digests", "expiring_digests", "orphaned_digests", "changelog", "reaper", "live", "dead":
		return true
	}
	for _, part := range []string{":QUEUED", ":PRIMED", ":INFO"} {
		if digest, ok := strings.CutSuffix(rest, part); ok {
			digest = strings.TrimSuffix(digest, ":RUN")
			return len(digest) >= 32 && len(digest) <= 64 && isLowerHex(digest)
		}
	}
	return false
}

// cutLast splits s around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
