package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/redlock"
)

// masters are three independent ones, the last of them behind a faulty network,
// and a Redlock client that has met all.
type masters struct {
	near   []*redis.Client // to look with
	proxy  *testredis.Proxy
	client *lock.Client
	events *recorder
}

func setupMasters(t *testing.T) *masters {
	t.Helper()
	m := &masters{events: &recorder{}}
	var nodes []*redis.Client
	for n := range 3 {
		srv := testredis.Start(t)
		m.near = append(m.near, srv.Client(t))
		opt := srv.Options()
		if n == 2 {
			m.proxy = testredis.NewProxy(t, srv.Addr())
			opt.Addr = m.proxy.Addr()
		}
		rdb := redis.NewClient(opt)
		t.Cleanup(func() { _ = rdb.Close() })
		nodes = append(nodes, rdb)
	}
	c, err := redlock.New(nodes, redlock.Options{
		Options: lock.Options{Timeout: 2 * time.Second}, NodeTimeout: 2 * time.Second, // the machine is shared
	})
	if err != nil {
		t.Fatal(err)
	}
	m.client = c
	c.Observe(m.events.add)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	mustRelease(t, mustAcquire(t, c, "warm", lease()))
	testredis.Eventually(t, 5*time.Second, func() bool { return m.on(t, "warm") == 0 }, "warm")
	return m
}

// on returns on how many masters a key is.
func (m *masters) on(t *testing.T, key string) (n int64) {
	t.Helper()
	for _, rdb := range m.near {
		n += exists(t, rdb, key)
	}
	return n
}

// B24: a node whose answer to the acquire was lost may have the lock all the
// same. It is freed there too, by the release and where there is no majority.
func TestRedlockFreesNodesThatNeverAnswered(t *testing.T) {
	t.Parallel()
	for _, majority := range []bool{true, false} {
		name := map[bool]string{true: "released", false: "no majority"}[majority]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := setupMasters(t)
			ctx := t.Context()
			if !majority {
				// The first one is certainly another's, the last one does not tell.
				m.near[0].Set(ctx, "k", "another", 0)
			}
			m.proxy.DropReplies(true)
			h, err := m.client.TryAcquire(ctx, "k", lock.Lease{TTL: time.Hour})
			if (err == nil) != majority {
				t.Fatalf("got %v", err)
			}
			if majority {
				testredis.Eventually(t, 5*time.Second, func() bool { return m.on(t, "k") == 3 }, "the acquire takes effect on all")
				mustRelease(t, h)
			}
			m.proxy.Heal()
			testredis.Eventually(t, 10*time.Second, func() bool {
				return exists(t, m.near[1], "k") == 0 && exists(t, m.near[2], "k", metaKey("k")) == 0
			}, "want the lock freed on the node that never answered")
			if !majority && m.near[0].Get(ctx, "k").Val() != "another" {
				t.Error("another's lock was touched")
			}
		})
	}
}

// B29: an answer that comes when its round is over finds its place: Close does
// not wait for it for ever.
func TestRedlockCloseAfterALateAnswer(t *testing.T) {
	t.Parallel()
	m := setupMasters(t)
	m.proxy.Delay(150 * time.Millisecond) // later than the others, and in time
	for range 3 {
		mustRelease(t, mustAcquire(t, m.client, "k", lease()))
	}
	closed := make(chan error, 1)
	go func() { closed <- m.client.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Close does not come back: a goroutine is stuck")
	}
}
