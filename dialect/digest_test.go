package dialect_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/dialect"
)

// The digest is of the hold: renewals do not change it, another holder does.
func TestDigestIsOfTheHold(t *testing.T) {
	t.Parallel()
	multilock := func(expires string) map[string]string {
		return map[string]string{valueHash: redissonHolder, valueHash + ":" + redissonHolder + ":expire_time": expires, valueHash + ":" + redissonHolder + ":lock_count": "1"}
	}
	members := func(list ...dialect.Member) []dialect.Member { return list }
	a, a2, b := dialect.Member{Name: "a", Score: 1}, dialect.Member{Name: "a", Score: 9}, dialect.Member{Name: "b", Score: 2}
	for what, tt := range map[string]struct {
		x, y dialect.Sample
		same bool
	}{
		"renewed zset":           {dialect.Sample{Type: "zset", TTL: time.Minute, Members: members(a, b)}, dialect.Sample{Type: "zset", TTL: time.Hour, Members: members(b, a2)}, true},
		"renewed zset, no ttl":   {dialect.Sample{Type: "zset", TTL: locksteward.NoExpiry, Members: members(a)}, dialect.Sample{Type: "zset", TTL: locksteward.NoExpiry, Members: members(a2)}, false},
		"another member":         {dialect.Sample{Type: "zset", TTL: time.Minute, Members: members(a)}, dialect.Sample{Type: "zset", TTL: time.Minute, Members: members(b)}, false},
		"one more":               {dialect.Sample{Type: "set", Members: members(a)}, dialect.Sample{Type: "set", Members: members(a, b)}, false},
		"another order":          {dialect.Sample{Type: "list", Members: members(a, b)}, dialect.Sample{Type: "list", Members: members(b, a)}, false},
		"cut in another place":   {dialect.Sample{Type: "list", Members: members(dialect.Member{Name: "ab"}, dialect.Member{Name: "c"})}, dialect.Sample{Type: "list", Members: members(dialect.Member{Name: "a"}, dialect.Member{Name: "bc"})}, false},
		"renewed multilock":      {dialect.Sample{Type: "hash", TTL: time.Minute, Fields: multilock("1794970030000")}, dialect.Sample{Type: "hash", TTL: time.Minute, Fields: multilock("1794970040000")}, true},
		"multilock without ttl":  {dialect.Sample{Type: "hash", TTL: locksteward.NoExpiry, Fields: multilock("1")}, dialect.Sample{Type: "hash", TTL: locksteward.NoExpiry, Fields: multilock("2")}, false},
		"taken once more":        {dialect.Sample{Type: "hash", Fields: map[string]string{redissonHolder: "1"}}, dialect.Sample{Type: "hash", Fields: map[string]string{redissonHolder: "2"}}, false},
		"an application's times": {dialect.Sample{Type: "hash", TTL: time.Minute, Fields: map[string]string{"a:expire_time": "1"}}, dialect.Sample{Type: "hash", TTL: time.Minute, Fields: map[string]string{"a:expire_time": "2"}}, false},
	} {
		key := locksteward.NewDigestKey()
		if x, y := tt.x.Digest(key), tt.y.Digest(key); x == "" || y == "" || (x == y) != tt.same {
			t.Errorf("%s: digests %q and %q, want the same: %t", what, x, y, tt.same)
		}
	}
	for what, s := range map[string]dialect.Sample{"too large": {Type: "string", TooLarge: true}, "stream": {Type: "stream"}, "gone": {Type: "none"}} {
		if d := s.Digest(locksteward.NewDigestKey()); d != "" {
			t.Errorf("%s: digest %q, want none", what, d)
		}
	}
}
