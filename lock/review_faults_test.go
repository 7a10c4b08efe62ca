package lock_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// listening waits until the server sends b's client what is meant for its process.
func (b *bundle) listening(t *testing.T) {
	t.Helper()
	channel := record.InstanceKey(record.DefaultPrefix, b.client.Instance())
	testredis.Eventually(t, 20*time.Second, func() bool {
		return b.rdb.PubSubNumSub(context.Background(), channel).Val()[channel] == 1
	}, "the process listens")
}

// calls returns how often the server has executed a command since it last forgot.
func calls(t *testing.T, rdb *redis.Client, command string) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(info)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Fault 27: a server that was restarted without its data has forgotten every lock:
// their contexts end when it answers again, long before the next renewal, and those
// of leases that are not renewed as well; also when it was away for so long that the
// pauses between two looks for it have grown.
// fault: 27
func TestRestartWithoutDataIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lease lock.Lease // renewed after 180 to 200 s
		away  int        // attempts to listen that fail meanwhile
	}{
		"restarted": {lock.Lease{TTL: 10 * time.Minute}, 0},
		"away":      {lock.Lease{TTL: 10 * time.Minute}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			var held []*lock.Handle
			for i := range 400 { // more than are asked for in one round trip
				held = append(held, mustAcquire(t, b.client, fmt.Sprint("k", i), tc.lease))
			}
			held = append(held, mustAcquire(t, b.client, "fixed", lock.Lease{TTL: time.Hour, NoRenew: true}))
			b.listening(t)
			b.srv.Kill()
			b.events.wait(t, lock.EventPushFailed, tc.away, 60*time.Second)
			b.srv.Restart()
			answers := time.Now()
			for _, h := range held {
				if r := lostReason(t, h, 20*time.Second); r != lock.ReasonGone {
					t.Errorf("%s: reason %s", h, r)
				}
			}
			took := time.Since(answers)
			t.Logf("the last context ended %s after the server answered", took)
			if took > 5*time.Second {
				t.Errorf("the last context ended %s after the server answered again, want 5s", took)
			}
			if n := len(b.events.of(lock.EventRenewed)) + len(b.events.of(lock.EventRenewFailed)); n != 0 {
				t.Errorf("%d renewals before that: it shows nothing", n)
			}
			b.events.wait(t, lock.EventLost, len(held), 10*time.Second) // the event of a loss comes after the end of its context
			if n := len(b.events.of(lock.EventLost)); n != len(held) {
				t.Errorf("told of %d losses, want %d", n, len(held))
			}
			mustRelease(t, mustAcquire(t, b.client, "k0", lease()))
		})
	}
}

// A subscription that breaks while the server stays costs one GET for each lock,
// once, and ends the hold of a lock that went meanwhile, of one that is another's
// and of no other.
// fault: 27
func TestBrokenSubscriptionLooksAtTheLocks(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	long := lock.Lease{TTL: 10 * time.Minute}
	const locks = 600
	var held []*lock.Handle
	for i := range locks {
		held = append(held, mustAcquire(t, b.client, fmt.Sprint("k", i), long))
	}
	b.listening(t)
	for _, cmd := range [][]any{{"config", "resetstat"}, {"del", "k7"}, {"set", "k8", "another"}, {"del", "k9"}, {"rpush", "k9", "x"}, {"client", "kill", "type", "pubsub"}} {
		if err := b.rdb.Do(ctx, cmd...).Err(); err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
	}
	for i, want := range map[int]lock.Reason{7: lock.ReasonGone, 8: lock.ReasonTaken, 9: lock.ReasonTaken} {
		if r := lostReason(t, held[i], 20*time.Second); r != want {
			t.Errorf("k%d: reason %s, want %s", i, r, want)
		}
	}
	b.listening(t)
	testredis.Eventually(t, 20*time.Second, func() bool { return calls(t, b.rdb, "get") >= locks }, "all locks are looked at")
	pings := calls(t, b.rdb, "ping")
	testredis.Eventually(t, 20*time.Second, func() bool { return calls(t, b.rdb, "ping") > pings+1 }, "a second goes by")
	if n := calls(t, b.rdb, "get"); n != locks {
		t.Errorf("%d reads for %d locks", n, locks)
	}
	for i, h := range held {
		if err := h.Err(); err != nil && (i < 7 || i > 9) {
			t.Errorf("k%d: %v", i, err)
		}
	}
	if n := len(b.events.of(lock.EventRenewed)); n != 0 {
		t.Errorf("%d renewals", n)
	}
}

// The first subscription of a process is no break: nothing is looked at, and an
// acquire costs no more commands than it did.
func TestFirstSubscriptionLooksAtNothing(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "SET with GET, without which a lock is not taken unread,")
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 10 * time.Minute})
	b.listening(t)
	pings := calls(t, b.rdb, "ping")
	testredis.Eventually(t, 20*time.Second, func() bool { return calls(t, b.rdb, "ping") > pings }, "a second goes by")
	if n := calls(t, b.rdb, "get"); n != 0 {
		t.Errorf("%d reads", n)
	}
	mustRelease(t, h)
}
