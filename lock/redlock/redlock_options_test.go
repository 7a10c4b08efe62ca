package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/redlock"
)

// unopened returns clients of addresses where nobody is.
func unopened(t *testing.T, addrs ...string) []*redis.Client {
	t.Helper()
	var list []*redis.Client
	for _, addr := range addrs {
		if addr == "" {
			list = append(list, nil)
			continue
		}
		o := &redis.Options{Addr: addr}
		if strings.HasPrefix(addr, "/") {
			o.Network = "unix"
		}
		rdb := redis.NewClient(o)
		t.Cleanup(func() { _ = rdb.Close() })
		list = append(list, rdb)
	}
	return list
}

// Bad input is refused before anything is sent, all of it at once, with its name.
func TestRedlockRefuses(t *testing.T) {
	t.Parallel()
	three := []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"}
	for name, c := range map[string]struct {
		addrs []string
		o     redlock.Options
		want  []string
	}{
		"none":           {nil, redlock.Options{}, []string{"at least 3", "got 0"}},
		"one":            {three[:1], redlock.Options{}, []string{"at least 3", "got 1", "use lock.New"}},
		"two":            {three[:2], redlock.Options{AllowEven: true}, []string{"at least 3", "got 2"}},
		"even":           {append(three[:3:3], "10.0.0.4:6379"), redlock.Options{}, []string{"odd number, got 4", "AllowEven"}},
		"nil":            {[]string{three[0], "", three[1]}, redlock.Options{}, []string{"nodes[1]: is nil"}},
		"same":           {[]string{three[0], three[1], three[0]}, redlock.Options{}, []string{"nodes[0] (10.0.0.1:6379) and nodes[2] (10.0.0.1:6379): are the same server"}},
		"localhost":      {[]string{"localhost:7001", "127.0.0.1:7001", three[0]}, redlock.Options{}, []string{"nodes[0] (localhost:7001) and nodes[1] (127.0.0.1:7001)"}},
		"loopback 6":     {[]string{"[::1]:7001", three[0], "LOCALHOST.:07001"}, redlock.Options{}, []string{"nodes[0] ([::1]:7001) and nodes[2]"}},
		"mapped":         {[]string{"[::ffff:10.0.0.1]:6379", three[0], three[1]}, redlock.Options{}, []string{"nodes[0]", "nodes[1]"}},
		"name":           {[]string{"Redis-1.example:6379", three[0], "redis-1.example.:6379"}, redlock.Options{}, []string{"nodes[0]", "nodes[2]"}},
		"socket":         {[]string{"/run/redis.sock", three[0], "/run/../run/redis.sock"}, redlock.Options{}, []string{"nodes[0]", "nodes[2]"}},
		"timeout":        {three, redlock.Options{NodeTimeout: time.Minute}, []string{"NodeTimeout: want 1ms to 10s", "1m0s"}},
		"uptime":         {three, redlock.Options{MinUptime: -1}, []string{"MinUptime: want 0 or more"}},
		"options":        {three, redlock.Options{Options: lock.Options{Timeout: 1, KeyPrefix: "{"}, MinUptime: -1}, []string{"Options.Timeout", "Options.KeyPrefix", "MinUptime"}},
		"several at one": {[]string{three[0], three[0], "", ""}, redlock.Options{}, []string{"odd number", "nodes[0]", "nodes[2]: is nil", "nodes[3]: is nil"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := redlock.New(unopened(t, c.addrs...), c.o)
			if client != nil || !errors.Is(err, lock.ErrInvalid) {
				t.Fatalf("got %v, %v", client, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"10.0.0.9:26379"}})
	defer failover.Close() //nolint:errcheck // Nothing was opened.
	if _, err := redlock.New(append(unopened(t, three[:2]...), failover), redlock.Options{}); !errors.Is(err, lock.ErrInvalid) || !strings.Contains(err.Error(), "nodes[2]: a Sentinel client") {
		t.Errorf("failover: %v", err)
	}
	for _, n := range []int{3, 4} {
		list := unopened(t, append(three[:3:3], "10.0.0.4:6379")[:n]...)
		c := openRedlock(t, list, redlock.Options{AllowEven: n == 4, MinUptime: time.Minute})
		_, err := c.Acquire(t.Context(), "", lock.Lease{TTL: time.Hour})
		if !errors.Is(err, lock.ErrInvalid) {
			t.Fatal(err)
		}
		for _, want := range []string{"key: is empty", "Lease.TTL: want at most redlock.Options.MinUptime, 1m0s, got 1h"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
}

// Two addresses of one server are found out by what it says of itself.
func TestRedlockSameServerTwice(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	detour := testredis.NewProxy(t, ns.srv[0].Addr())
	list := ns.clients(t)
	list[2] = unopened(t, detour.Addr())[0]
	c := openRedlock(t, list, redlock.Options{NodeTimeout: time.Second})
	for range 3 {
		_, err := c.TryAcquire(t.Context(), "k", lease())
		if !errors.Is(err, lock.ErrInvalid) || !strings.Contains(err.Error(), "nodes[0]") ||
			!strings.Contains(err.Error(), "nodes[2] ("+detour.Addr()+") are the same server") {
			t.Fatalf("got %v", err)
		}
		if n := ns.on("k"); n != 0 {
			t.Errorf("left on %d nodes", n)
		}
	}
}

// A user without INFO can use Redlock, but not MinUptime.
func TestRedlockWithoutInfo(t *testing.T) {
	t.Parallel()
	var list []*redis.Client
	for range 3 {
		srv := testredis.Start(t, testredis.WithACL("user app on >app ~* &* +@all -info"))
		list = append(list, srv.ClientAs(t, "app", "app"))
	}
	c := openRedlock(t, list, redlock.Options{NodeTimeout: time.Second})
	mustRelease(t, mustAcquire(t, c, "k", lease()))
	guarded := openRedlock(t, list, redlock.Options{NodeTimeout: time.Second, MinUptime: time.Minute})
	_, err := guarded.TryAcquire(t.Context(), "k", lease())
	failed, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || failed.Temporary() || !strings.Contains(err.Error(), "INFO") || strings.Contains(err.Error(), "app:app") {
		t.Errorf("got %v", err)
	}
}
