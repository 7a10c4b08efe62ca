package testredis_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// The expiry is the same whether the server tells it or it is computed.
func TestExpireAt(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("few on >pw ~* +@all -pexpiretime"))
	all, few := srv.Client(t), srv.ClientAs(t, "few", "pw")
	at := time.Now().Add(time.Hour).UnixMilli()
	for key, want := range map[string]int64{"gone": -2, "lasts": -1, "ends": at} {
		if want != -2 {
			all.Set(t.Context(), key, "v", 0)
		}
		if want > 0 {
			all.PExpireAt(t.Context(), key, time.UnixMilli(want))
		}
		for range 50 {
			if a, b := testredis.ExpireAt(t, all, key), testredis.ExpireAt(t, few, key); a != want || b != want {
				t.Fatalf("%s: expires at %d, computed %d, want %d", key, a, b, want)
			}
		}
	}
}
