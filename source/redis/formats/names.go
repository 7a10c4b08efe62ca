package formats

import "strings"

// MayBeLock says by its name alone that a key is worth a look though no class
// matches it and no word of it speaks of a lock: some lock library, or a helper
// of one, has such names. What it is its value says. Every scanned key comes
// through here: it takes a few nanoseconds and does not allocate.
func MayBeLock(key string) bool {
	if len(key) < 3 {
		return false
	}
	first, last := key[0], key[len(key)-1]
	for i := range names.first[first] {
		if names.first[first][i].matches(key) {
			return true
		}
	}
	for i := range names.last[last] {
		if names.last[last][i].matches(key) {
			return true
		}
	}
	return isScheduleMutex(key)
}

// lockName is how the names of a library's locks begin, end, and what is in
// between; one of the first two is not empty.
type lockName struct{ prefix, suffix, infix string }

func (n *lockName) matches(key string) bool {
	return len(key) > len(n.prefix)+len(n.suffix) && strings.HasPrefix(key, n.prefix) && strings.HasSuffix(key, n.suffix) &&
		(n.infix == "" || strings.Contains(key[len(n.prefix):], n.infix))
}

// names are by the first byte of their prefix, or else by the last byte of their
// suffix. Names with lock, lck, mutex, semaphore or lease in them are not here:
// they are found by that (class.Match).
var names = func() (table struct{ first, last [256][]lockName }) {
	for _, n := range []lockName{
		{suffix: "}:timeout"},       // Redisson's permits
		{suffix: ":countdownlatch"}, // Redisson, of one element
		{suffix: ".readers"},        // DistributedLock
		{suffix: ".writer"},         // DistributedLock
		{prefix: "{", suffix: "}"},  // go-redislock
		{prefix: "asynq:{", infix: "}:unique:"},
		{prefix: "bull", infix: ":de:"}, // BullMQ
		{prefix: "{bull", infix: ":de:"},
		{prefix: "qo_"}, // celery-once
		{prefix: "huey.results."},
		{prefix: "rq:clean_registries:"},
		{prefix: "l:"}, // Sentry
		{prefix: "uniquejobs:"},
		{prefix: "activejob_uniqueness:"},
		{prefix: "laravel", infix: "laravel_unique_job:"},
		{prefix: "laravel", infix: "laravel-queue-overlap:"},
		{prefix: "laravel", infix: "framework/command-"},
	} {
		if n.prefix != "" {
			table.first[n.prefix[0]] = append(table.first[n.prefix[0]], n)
			continue
		}
		end := n.suffix[len(n.suffix)-1]
		table.last[end] = append(table.last[end], n)
	}
	return table
}()

// isScheduleMutex knows Laravel's framework/schedule-<40 hex>, with four digits
// of a time behind it or not, behind any prefix.
func isScheduleMutex(key string) bool {
	const word = "framework/schedule-"
	for _, tail := range [...]int{40, 44} {
		if i := len(key) - tail; i >= len(word) && key[i-1] == '-' && key[i-len(word):i] == word {
			return true
		}
	}
	return false
}
