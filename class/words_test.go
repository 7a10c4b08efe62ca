package class

import (
	"regexp"
	"testing"
)

func TestNameOf(t *testing.T) {
	t.Parallel()
	for hint, keys := range map[nameHint][]string{
		hintWord: {
			"lock", "LOCK", "Lock", "lock:order:42", "order:lock", "order:locks", "a.lock.b", "a_lock", "a-lock",
			"a/lock/b", "{lock}", "{order:1}:lock", "order{lock", "lock}x", "orderLock", "orderLock:1", "lockOrder", "OrderLockKey",
			"DBLock", "LOCKOrder", "v2Lock", "unLock", "RedisMutex:a", "mutex", "my-mutex", "MUTEX_A", "lck", "a:lck",
			"redlock:x", "RedLock", "REDLOCK", "redlock", "resque_scheduler_master_lock", "orderLocks", "locks",
			"lock:stock:1", "lock-stock", "stock_lock", "lock_stocks", "lock_numbering", "lockstock_lock", "lock_order", "lock_stock:lock",
			"lock:\n\x00", "locked:lock", "clock:lock", "_lock_", "lock{42}",
		},
		hintCandidate: {
			"locked", "lockout", "unlocked", "unlock", "user:unlocked:1", "lock42", "lock1:a", "Lock2", "spinlock", "rwlock",
			"orderlock", "lock||app||r", "lock key", "mutexes", "semaphore:a", "Semaphore", "my-semaphore-7", "SINGLETONLOCK_1",
			"lease", "gitlab:exclusive_lease:x", "job:leases", "redlocks", "predlock", "deadlock", "lcks", "xlck1",
			"lock_stock:sku=57", "lock_stock", "lockStock:1", "LOCK_STOCK", "sku:lock_amount", "locks_count", "order.lockNum", "lock_qty-1",
			"库存lock:1", "lock库存", "flock", "sherlock", "blocklock", "\x00lock", "lockSmith1s"[:4] + "smith", "redlock2",
		},
		hintNone: {
			"", "user:1", "clock", "block", "blocked", "clockwise", "CLOCK", "BLOCK:1", "stock", "stock:sku:1", "blockchain:tip",
			"o'clock", "unblock:me", "release:v1", "please", "releases", "loc", "lo:ck", "lk", "mutx", "sem:1", "session:abc", "Blocked",
			"k", "ck", "ock", "x", "mute", "semap", "leaseholder", "lea", "s", "timeBlocks",
		},
	} {
		for _, key := range keys {
			if got := nameOf(key); got != hint {
				t.Errorf("nameOf(%q) = %d, want %d", key, got, hint)
			}
		}
	}
}

// FuzzNameOf compares the one-pass reader with plain regular expressions of
// what the comment at the top of words.go says.
func FuzzNameOf(f *testing.F) {
	for _, seed := range []string{
		"lock:1", "orderLock", "CLOCK", "redlocks", "mutexes", "release", "lease:1", "semaphore", "DBLock", "v2Lock", "bLock",
		"lock", "xlck", "lcK", "blocklock", "SemaPhore", "locks:locks", "\xfflock", "lock_stock", "locksCount:", "Lock_qty_lock", "Locks", "LOCKs", "redLock", "REDlock",
	} {
		f.Add(seed)
	}
	var (
		quantity   = regexp.MustCompile(`^(_|[A-Z])`)
		amounts    = regexp.MustCompile(`(?i)^_?(amount|balance|count|inventory|money|num|number|qty|quantity|score|stock)`)
		words      = regexp.MustCompile(`(?i)redlock|locks|lock|mutex|lck`)
		candidates = regexp.MustCompile(`(?i)lock|lck|mutex|semaphore|leases|lease`)
	)
	// all is every match at every place, overlapping ones too.
	all := func(re *regexp.Regexp, key string, visit func(start, end int) bool) bool {
		for from := range len(key) {
			for end := from + 1; end <= len(key); end++ {
				if re.FindString(key[from:end]) == key[from:end] && visit(from, end) {
					return true
				}
			}
		}
		return false
	}
	f.Fuzz(func(t *testing.T, key string) {
		if len(key) > 60 {
			return
		}
		standsAlone := func(start, end int) bool { return isEdge(key, start) && isEdge(key, end) }
		// lock and locks are no words before a quantity.
		isAmount := func(start, end int) bool {
			if key[start]|0x20 != 'l' || key[start+1]|0x20 != 'o' || !quantity.MatchString(key[end:]) {
				return false
			}
			for n := 1; n <= len(key)-end; n++ {
				if amounts.FindString(key[end:end+n]) == key[end:end+n] && isEdge(key, end+n) {
					return true
				}
			}
			return false
		}
		want := hintNone
		switch {
		case all(words, key, func(start, end int) bool { return standsAlone(start, end) && !isAmount(start, end) }):
			want = hintWord
		case all(candidates, key, func(start, end int) bool {
			switch key[start] | 0x20 {
			case 'l':
				if key[start+1]|0x20 == 'e' {
					return standsAlone(start, end)
				}
				if key[start+1]|0x20 == 'o' && !isEdge(key, start) {
					return key[start-1]|0x20 != 'b' && key[start-1]|0x20 != 'c'
				}
			}
			return true
		}):
			want = hintCandidate
		}
		if got := nameOf(key); got != want {
			t.Errorf("nameOf(%q) = %d, want %d", key, got, want)
		}
	})
}
