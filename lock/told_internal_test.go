package lock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
)

// TestWhoWaitsIsTold of a release, and of a head of the queue that gives up, on the
// channels that belong to the lock and to the processes that wait, whatever the names
// of keys and their prefix are like: scripts make the channels of a release out of the
// name of the waiters' key.
func TestWhoWaitsIsTold(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb := srv.Client(t)
	for name, tc := range map[string]struct{ prefix, key string }{
		"default":               {"", "k"},
		"tagged":                {"", "a:{tag}:b"},
		"prefix like a kind":    {"my:waiter:", "k2"},
		"key like a waiters'":   {"", "x:waiter:{k3}"},
		"key with line and dot": {"p.", "a\n%k4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(rdb, Options{KeyPrefix: tc.prefix})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			names := record.NamesOf(c.opts.KeyPrefix, tc.key)
			process := record.InstanceKey(c.opts.KeyPrefix, c.instance+"-waiting")
			sub := rdb.Subscribe(t.Context(), process)
			t.Cleanup(func() { _ = sub.Close() })
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			told := func(channel, message string) {
				t.Helper()
				got, err := sub.ReceiveTimeout(t.Context(), 10*time.Second)
				if m, ok := got.(*redis.Message); err != nil || !ok || m.Channel != channel || m.Payload != message {
					t.Fatalf("told %+v (%v), want %q on %q", got, err, message, channel)
				}
			}
			waits := func(id, process string, place float64) {
				t.Helper()
				w := record.Waiter{Instance: process, Since: 1, Until: time.Now().Add(time.Minute).UnixMilli()}
				for _, err := range []error{
					rdb.HSet(t.Context(), names.Waiter, id, w.Encode()+" 150 - v {}").Err(),
					rdb.ZAdd(t.Context(), names.Queue, redis.Z{Score: place, Member: id}).Err(),
				} {
					if err != nil {
						t.Fatal(err)
					}
				}
			}

			h, err := c.TryAcquire(t.Context(), tc.key, Lease{TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			waits("first", c.instance+"-waiting", 1)
			waits("second", "deaf", 2)
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			told(process, "turn first 0")

			r := c.request(tc.key, Lease{TTL: time.Minute}, nil, true)
			waits(r.id, "deaf", 0)
			if err := c.free(context.Background(), leaveScript, time.Second, &r.token, false); err != notOurs(ReasonGone) {
				t.Fatalf("left the queue with %v", err)
			}
			told(process, "turn first 0")
		})
	}
}
