package formats_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// The digest is of the hold: renewals do not change it, another holder does.
func TestDigestIsOfTheHold(t *testing.T) {
	t.Parallel()
	multilock := func(expires string) map[string]string {
		return map[string]string{valueHash: redissonHolder, valueHash + ":" + redissonHolder + ":expire_time": expires, valueHash + ":" + redissonHolder + ":lock_count": "1"}
	}
	members := func(list ...formats.Member) []formats.Member { return list }
	a, a2, b := formats.Member{Name: "a", Score: 1}, formats.Member{Name: "a", Score: 9}, formats.Member{Name: "b", Score: 2}
	for what, tt := range map[string]struct {
		x, y formats.Sample
		same bool
	}{
		"renewed zset":           {formats.Sample{Type: "zset", TTL: time.Minute, Members: members(a, b)}, formats.Sample{Type: "zset", TTL: time.Hour, Members: members(b, a2)}, true},
		"renewed zset, no ttl":   {formats.Sample{Type: "zset", TTL: locksteward.NoExpiry, Members: members(a)}, formats.Sample{Type: "zset", TTL: locksteward.NoExpiry, Members: members(a2)}, false},
		"another member":         {formats.Sample{Type: "zset", TTL: time.Minute, Members: members(a)}, formats.Sample{Type: "zset", TTL: time.Minute, Members: members(b)}, false},
		"one more":               {formats.Sample{Type: "set", Members: members(a)}, formats.Sample{Type: "set", Members: members(a, b)}, false},
		"another order":          {formats.Sample{Type: "list", Members: members(a, b)}, formats.Sample{Type: "list", Members: members(b, a)}, false},
		"cut in another place":   {formats.Sample{Type: "list", Members: members(formats.Member{Name: "ab"}, formats.Member{Name: "c"})}, formats.Sample{Type: "list", Members: members(formats.Member{Name: "a"}, formats.Member{Name: "bc"})}, false},
		"renewed multilock":      {formats.Sample{Type: "hash", TTL: time.Minute, Fields: multilock("1794970030000")}, formats.Sample{Type: "hash", TTL: time.Minute, Fields: multilock("1794970040000")}, true},
		"multilock without ttl":  {formats.Sample{Type: "hash", TTL: locksteward.NoExpiry, Fields: multilock("1")}, formats.Sample{Type: "hash", TTL: locksteward.NoExpiry, Fields: multilock("2")}, false},
		"taken once more":        {formats.Sample{Type: "hash", Fields: map[string]string{redissonHolder: "1"}}, formats.Sample{Type: "hash", Fields: map[string]string{redissonHolder: "2"}}, false},
		"an application's times": {formats.Sample{Type: "hash", TTL: time.Minute, Fields: map[string]string{"a:expire_time": "1"}}, formats.Sample{Type: "hash", TTL: time.Minute, Fields: map[string]string{"a:expire_time": "2"}}, false},
	} {
		key := locksteward.NewDigestKey()
		if x, y := tt.x.Digest(key), tt.y.Digest(key); x == "" || y == "" || (x == y) != tt.same {
			t.Errorf("%s: digests %q and %q, want the same: %t", what, x, y, tt.same)
		}
	}
	for what, s := range map[string]formats.Sample{"too large": {Type: "string", TooLarge: true}, "stream": {Type: "stream"}, "gone": {Type: "none"}} {
		if d := s.Digest(locksteward.NewDigestKey()); d != "" {
			t.Errorf("%s: digest %q, want none", what, d)
		}
	}
}
