package releaser

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// Of servers that do not tell PEXPIRETIME, an expiry is the one that was seen unless it
// cannot be: then it is informed that the lock was renewed.
func TestExpiryOfTimeAndTTL(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	for name, test := range map[string]struct {
		ttl, took time.Duration
		was, want int64
	}{
		"the same":          {time.Minute, 0, 1_060_000, 1_060_000},
		"2 ms later":        {time.Minute, 0, 1_060_002, 1_060_002},
		"3 ms later":        {time.Minute, 0, 1_060_003, 1_060_000},
		"2 ms earlier":      {time.Minute, 0, 1_059_998, 1_059_998},
		"renewed":           {time.Minute, 0, 1_030_000, 1_060_000},
		"a slow server":     {time.Minute, 50 * time.Millisecond, 1_060_040, 1_060_040},
		"persisted":         {locksteward.NoExpiry, 0, 1_060_000, locksteward.NoExpireAt},
		"without, and is":   {locksteward.NoExpiry, 0, locksteward.NoExpireAt, locksteward.NoExpireAt},
		"nothing was known": {time.Minute, 0, 0, 1_060_000},
	} {
		if got := expiryBy(test.ttl, now, now.Add(test.took), test.was); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
