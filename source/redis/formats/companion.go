package formats

import (
	"strings"
)

// Companion says whether key is a helper of a known lock library and never a
// lock itself, though its name may speak of one: queues, signals, latches,
// counters. Such keys are not listed and never judged. lock is the key of the
// lock that it goes with; "" for a helper that belongs to no one lock or outlives
// it by design, as fences do.
//
// A helper that has no TTL and whose lock is gone is an orphan, unless somebody
// still waits: see [Deadlines].
func Companion(key string) (dialect, lock string, ok bool) {
	for _, f := range companions {
		if lock, ok := f.companion(key); ok {
			return f.name, lock, true
		}
	}
	return "", "", false
}

// companions are the families that have helpers, and what has no lock of its
// own beside them.
var companions = func() (list []*family) {
	for _, f := range families {
		if f.companion != nil {
			list = append(list, f)
		}
	}
	return append(list, &family{name: Token, companion: queueHelper})
}()

// queueHelper knows the bookkeeping of Node's job queues.
func queueHelper(key string) (lock string, ok bool) {
	if strings.HasSuffix(key, ":stalled") || strings.HasSuffix(key, ":stalled-check") { // Bull, BullMQ
		return "", true
	}
	rest, ok := strings.CutPrefix(key, "bq:") // bee-queue
	return "", ok && (strings.HasSuffix(rest, ":stallBlock") || strings.HasSuffix(rest, ":stalling"))
}

// Deadlines names the sorted set whose scores say until when, in ms of server
// time, those are believed who wait in the helper key; "" if there is none. While
// one of them is in the future the helper is no orphan, whatever became of the
// lock: between two holders there is none.
func Deadlines(key string) string {
	const queue, timeout = "redisson_lock_queue:", "redisson_lock_timeout:"
	switch {
	case strings.HasPrefix(key, timeout):
		return key
	case strings.HasPrefix(key, queue):
		return timeout + key[len(queue):]
	default:
		return ""
	}
}

// cutLast splits s around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
