package testredis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestProxyHasLittleBandwidth(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	o := srv.Options()
	o.Addr, o.ReadTimeout = proxy.Addr(), 10*time.Second
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Bandwidth(2000)
	began := time.Now()
	if err := c.Set(t.Context(), "k", strings.Repeat("x", 1000), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 500*time.Millisecond || took > 3*time.Second {
		t.Errorf("1 kB at 2 kB/s took %s", took)
	}
	proxy.Heal()
	// At 2 kB/s this would take ten seconds.
	if err := srv.Client(t).Set(t.Context(), "k", strings.Repeat("x", 20_000), 0).Err(); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if v, err := c.Get(t.Context(), "k").Result(); err != nil || len(v) != 20_000 || time.Since(began) > 4*time.Second {
		t.Errorf("healed: %d bytes, %v, after %s", len(v), err, time.Since(began))
	}
}
