package scanner_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// TestPlaceholders: only the placeholder of a known request, alone in its key, hides
// one; whatever else has the mark of a placeholder is a lock, and says that it is not
// verified. Without a store, as in a scan, nothing is known.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	const redisson = "b983c153-7421-469a-addb-44fb92259a1b:1"
	known, other := formats.PlaceholderOwner("r-known"), formats.PlaceholderOwner("r-other")
	must(t, c.Set(ctx, "lock:known", known, time.Minute).Err())
	must(t, c.Set(ctx, "lock:forged", other, time.Minute).Err())
	must(t, c.Set(ctx, "lock:copied", known, time.Minute).Err())
	must(t, c.HSet(ctx, "lock:redisson", redisson, "1", known, "1").Err())
	must(t, c.PExpire(ctx, "lock:redisson", time.Minute).Err())

	for name, tc := range map[string]struct {
		placeholder func(key, requestID string) bool
		hidden      map[string]bool
	}{
		"without a store": {},
		"with one": {
			placeholder: func(key, requestID string) bool {
				return requestID == "r-known" && (key == "lock:known" || key == "lock:redisson")
			},
			hidden: map[string]bool{"lock:known": true},
		},
	} {
		r := fast(srv.URL())
		r.placeholder = tc.placeholder
		s := r.build(t)
		seen := map[string]locksteward.Lock{}
		for _, l := range sweep(t, s).Locks {
			seen[l.Key] = l
		}
		for _, key := range []string{"lock:known", "lock:forged", "lock:copied", "lock:redisson"} {
			l, ok := seen[key]
			if ok == tc.hidden[key] || ok && (l.Kind != locksteward.KindLock || l.TokenKind != locksteward.UnverifiedPlaceholder) {
				t.Errorf("%s: %s: seen %t: %+v", name, key, ok, l.Observation)
			}
			direct, err := s.Table().Refresh(ctx, key)
			if (err == nil) == tc.hidden[key] || err == nil && direct.TokenKind != locksteward.UnverifiedPlaceholder {
				t.Errorf("%s: %s: looked at directly: %+v, %v", name, key, direct.Observation, err)
			}
		}
	}
}
