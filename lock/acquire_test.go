package lock_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// Promise: acquire is one script; token, fence, metadata and TTL together.
func TestAcquireWritesLockAndMetadataTogether(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{App: "billing", Slot: "billing-0"})
	ctx := t.Context()
	h := mustAcquire(t, b.client, "lock:order:42", lock.Lease{
		TTL: 30 * time.Second, Expect: 5 * time.Second, MaxHold: time.Hour, Class: "orders", Purpose: "charge card",
		Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	value, err := b.rdb.Get(ctx, "lock:order:42").Result()
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := record.ParseValue([]byte(value)); !ok || id != h.ID() {
		t.Errorf("value names hold %q, handle says %q", id, h.ID())
	}
	now := b.rdb.Time(ctx).Val()
	m := meta(t, b.rdb, "lock:order:42")
	host, _ := os.Hostname()
	want := record.Meta{
		V: 2, ID: h.ID(), Instance: b.client.Instance(), App: "billing", Host: host, PID: os.Getpid(),
		Class: "orders", Purpose: "charge card", TTL: 30000, RenewEvery: 10000, Expect: 5000, MaxHold: 3600000,
		Fence: h.Fence(), Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Acquired: m.Acquired,
	}
	if !reflect.DeepEqual(*m, want) {
		t.Errorf("metadata\n%+v\nwant\n%+v", *m, want)
	}
	if d := now.Sub(time.UnixMilli(m.Acquired)); d < 0 || d > 10*time.Second {
		t.Errorf("acquired %s before the server's clock", d)
	}
	if ttl := b.rdb.PTTL(ctx, "lock:order:42").Val(); ttl <= 0 || ttl > 30*time.Second {
		t.Errorf("TTL of the lock: %s", ttl)
	}
	if ttl := b.rdb.PTTL(ctx, metaKey("lock:order:42")).Val(); ttl <= record.Grace || ttl > record.Grace+30*time.Second {
		t.Errorf("TTL of the metadata: %s", ttl)
	}
	if fence, _ := b.rdb.Get(ctx, record.FenceKey(record.DefaultPrefix, "lock:order:42")).Int64(); fence != h.Fence() {
		t.Errorf("fence key has %d, handle %d", fence, h.Fence())
	}
	if v := h.Validity(); v <= 20*time.Second || v > 30*time.Second-302*time.Millisecond {
		t.Errorf("validity: %s", v)
	}
	mustRelease(t, h)
	if n := exists(t, b.rdb, "lock:order:42", metaKey("lock:order:42")); n != 0 {
		t.Errorf("%d keys left after the release", n)
	}
	if err := h.Release(ctx); err != nil {
		t.Errorf("second release: %v", err)
	}
	if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrReleased) {
		t.Errorf("cause after the release: %v", cause)
	}
}

// Promise: exactly two commands per uncontended acquire and
// release. Counted on the wire, as replies of the server.
func TestTwoCommandsPerPair(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	proxy := testredis.NewProxy(t, srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), DisableIdentity: true})
	t.Cleanup(func() { _ = rdb.Close() })
	c := open(t, rdb, lock.Options{})
	pair := func() {
		h := mustAcquire(t, c, "k", lease())
		mustRelease(t, h)
	}
	// The first pair opens connections, loads the scripts and starts heartbeat
	// and push; those are quiet once the heartbeat and the subscription stand.
	pair()
	testredis.Eventually(t, 5*time.Second, func() bool {
		ctx := context.Background()
		key := record.InstanceKey(record.DefaultPrefix, c.Instance())
		subs := srv.Client(t).PubSubNumSub(ctx, key).Val()
		return exists(t, srv.Client(t), key) == 1 && subs[key] == 1
	}, "heartbeat and subscription")
	calls := func() int64 { return evals(t, srv.Client(t)) }
	// A heartbeat (every 5 s) and pings of the subscriber (every 1 s) may fall
	// into a measurement; of several short ones the smallest has none.
	best := 1 << 30
	for range 20 {
		before, replies := calls(), proxy.Replies()
		for range 5 {
			pair()
		}
		if n := calls() - before; n < 10 {
			t.Fatalf("%d scripts for 5 pairs: not what is to be measured", n)
		}
		best = min(best, proxy.Replies()-replies)
	}
	if best != 10 {
		t.Errorf("5 pairs took %d commands, want 10", best)
	}
}

// evals returns how many scripts a server has run.
func evals(t *testing.T, rdb *redis.Client) (n int64) {
	t.Helper()
	info := rdb.Info(context.Background(), "commandstats").Val()
	for l := range strings.SplitSeq(info, "\r\n") {
		for _, name := range []string{"cmdstat_evalsha:", "cmdstat_eval:"} {
			if rest, ok := strings.CutPrefix(l, name); ok {
				n += parseCalls(t, rest)
			}
		}
	}
	return n
}

func parseCalls(t *testing.T, stat string) int64 {
	t.Helper()
	text, ok := strings.CutPrefix(strings.Split(stat, ",")[0], "calls=")
	if !ok {
		t.Fatalf("commandstats: %q", stat)
	}
	var n int64
	for _, c := range text {
		n = n*10 + int64(c-'0')
	}
	return n
}

func TestTryAcquireSaysWhoHolds(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{App: "first", Host: "web-1"})
	other := open(t, b.rdb, lock.Options{App: "second"})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 30 * time.Second, Purpose: "p", Class: "c"})
	defer h.Release(context.Background())
	_, err := other.TryAcquire(t.Context(), "k", lease())
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok || !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	if held.Holder.App != "first" || held.Holder.Host != "web-1" || held.Holder.PID != os.Getpid() ||
		held.Holder.ID != h.ID() || held.Holder.Fence != h.Fence() || held.Holder.Purpose != "p" ||
		held.Holder.Class != "c" || held.Holder.Instance != b.client.Instance() || held.Holder.Acquired == 0 {
		t.Errorf("holder: %+v", held.Holder)
	}
	if left := time.Until(held.Until); left < 20*time.Second || left > 30*time.Second {
		t.Errorf("until in %s", left)
	}
	if strings.Contains(err.Error(), "ls2:") {
		t.Errorf("error shows the token: %v", err)
	}
	if ttl := b.rdb.PTTL(t.Context(), metaKey("k")).Val(); ttl <= 0 {
		t.Errorf("a failed attempt took the metadata's TTL: %s", ttl)
	}
}

// A failed attempt on another library's lock writes nothing.
func TestForeignLockIsHeldAndUntouched(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	b.rdb.Set(ctx, "k", "some-uuid", 0)
	_, err := b.client.TryAcquire(ctx, "k", lease())
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok || held.Holder.ID != "" || !held.Until.IsZero() {
		t.Fatalf("got %#v", err)
	}
	if n := exists(t, b.rdb, metaKey("k"), record.FenceKey(record.DefaultPrefix, "k")); n != 0 {
		t.Errorf("%d companions of a foreign lock were written", n)
	}
	if v := b.rdb.Get(ctx, "k").Val(); v != "some-uuid" {
		t.Errorf("value: %q", v)
	}
}

func TestMutualExclusionUnderContention(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	second := open(t, b.rdb, lock.Options{})
	var inside, total atomic.Int64
	var last int64 // guarded by the lock: that is the test
	var wg sync.WaitGroup
	for i := range 16 {
		c := b.client
		if i%2 == 0 {
			c = second
		}
		wg.Go(func() {
			for range 10 {
				err := c.Do(t.Context(), "k", lease(), func(_ context.Context, fence int64) error {
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d holders at once", n)
					}
					if fence <= last {
						t.Errorf("fence %d after %d", fence, last)
					}
					last = fence
					total.Add(1)
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total.Load() != 160 {
		t.Errorf("%d holds, want 160", total.Load())
	}
}

// A waiter is notified by the release.
func TestReleaseWakesWaiter(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	other := open(t, b.rdb, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	got := make(chan *lock.Handle, 1)
	go func() {
		h, err := other.Acquire(context.Background(), "k", lease())
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	channel := record.InstanceKey(record.DefaultPrefix, other.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		return b.rdb.PubSubNumSub(context.Background(), channel).Val()[channel] == 1
	}, "waiter subscribes")
	queued(t, b.rdb, "k", 1)
	mustRelease(t, h)
	select {
	case h := <-got:
		mustRelease(t, h)
	case <-time.After(10 * time.Second):
		t.Fatal("waiter was not woken")
	}
}

// B12: a release between the failed attempt and the acknowledged subscription.
func TestReleaseBeforeSubscriptionIsNotMissed(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	// A waiter tries again a second after its attempt anyway: who has the lock before was
	// notified. A busy machine may be late many times.
	for try := 1; ; try++ {
		proxy := testredis.NewProxy(t, b.srv.Addr())
		rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		slow := open(t, rdb, lock.Options{})
		h := mustAcquire(t, b.client, "k", lease())
		proxy.DelayRequests(40 * time.Millisecond)
		began := time.Now()
		got := wanting(slow)
		// It is in the queue, and its subscription is on its slow way again.
		queued(t, b.rdb, "k", 1)
		channel := record.InstanceKey(record.DefaultPrefix, slow.Instance())
		testredis.Eventually(t, 5*time.Second, func() bool {
			b.rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
			return b.rdb.PubSubNumSub(t.Context(), channel).Val()[channel] == 0
		}, "nobody listens")
		mustRelease(t, h)
		mustRelease(t, served(t, got))
		if time.Since(began) < time.Second {
			return
		}
		if try == 20 {
			t.Fatal("the release was missed")
		}
	}
}

// Without pub/sub waiters poll.
func TestWaiterPollsWhereNothingIsPushed(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "an ACL that denies channels")
	b := setup(t, lock.Options{}, testredis.WithACL("app on >secret ~* resetchannels +@all"))
	rdb := b.srv.ClientAs(t, "app", "secret")
	events := &recorder{}
	c := open(t, rdb, lock.Options{})
	c.Observe(events.add)
	h := mustAcquire(t, c, "k", lease())
	got := make(chan error, 1)
	go func() {
		h, err := c.Acquire(context.Background(), "k", lease())
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	events.wait(t, lock.EventPushFailed, 1, 5*time.Second)
	mustRelease(t, h)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

// B17: a context that ends while waiting leaves no key and says both why and
// who.
func TestCancelWhileWaitingLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	other := open(t, b.rdb, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	// A loaded machine may not get the first answer in time.
	testredis.Eventually(t, 10*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		_, err := other.Acquire(ctx, "k", lease())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		return errors.Is(err, lock.ErrHeld)
	}, "who has it is said")
	mustRelease(t, h)
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys left", n)
	}
	mustAcquire(t, other, "k", lease())
	// It is not known who has the lock where an answer comes too late.
	testredis.Eventually(t, 10*time.Second, func() bool {
		began := time.Now()
		_, err := b.client.Acquire(t.Context(), "k", lock.Lease{TTL: time.Second, Wait: 50 * time.Millisecond})
		if !errors.Is(err, lock.ErrHeld) && !errors.Is(err, lock.ErrUnknown) || time.Since(began) > 5*time.Second {
			t.Fatalf("Lease.Wait: %v after %s", err, time.Since(began))
		}
		return errors.Is(err, lock.ErrHeld)
	}, "Lease.Wait ends the waiting")
	canceled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := b.client.Acquire(canceled, "free", lease()); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	if n := exists(t, b.rdb, "free"); n != 0 {
		t.Error("an ended context took a lock")
	}
}

// Observers may come and go; a call that waited says so.
func TestObserve(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	seen := &recorder{}
	stop := b.client.Observe(seen.add)
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 30 * time.Second, Trace: "00-aa-bb-01"})
	if got := seen.of(lock.EventAcquired); len(got) != 1 || got[0].Contended || got[0].Trace != "00-aa-bb-01" {
		t.Errorf("acquired: %+v", got)
	}
	if _, err := b.client.TryAcquire(t.Context(), "k", lease()); !errors.Is(err, lock.ErrHeld) {
		t.Fatal(err)
	}
	if got := seen.of(lock.EventHeld); len(got) != 1 || !got[0].Contended {
		t.Errorf("held: %+v", got)
	}
	stop()
	mustRelease(t, h)
	if got := seen.of(lock.EventReleased); len(got) != 0 {
		t.Errorf("told after it was taken away: %+v", got)
	}
	if got := b.events.of(lock.EventReleased); len(got) != 1 {
		t.Errorf("another observer: %+v", got)
	}
}

// HeldError.Until is the end of the holder's lease as the last attempt saw it, however
// long the waiter has waited since.
func TestHeldUntilIsNotLate(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	holder := lease()
	holder.NoRenew = true
	mustAcquire(t, b.client, "k", holder)
	end := time.UnixMilli(testredis.ExpireAt(t, b.rdb, "k"))
	// Cancelled, it has longer to leave the queue than at the end of Lease.Wait.
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(3*time.Second, cancel).Stop()
	_, err := b.client.Acquire(ctx, "k", lease())
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok {
		t.Fatal(err)
	}
	if late := held.Until.Sub(end); late > 2*time.Second {
		t.Errorf("until %s, %s after the end of the lease", held.Until, late)
	}
}
