package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

func fair() lock.Lease { return lock.Lease{TTL: 30 * time.Second, Fair: true} }

func waitKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindWait, key)
}

func waiterKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindWaiter, key)
}

// queued waits until n stand in the queue of key.
func queued(t *testing.T, rdb redis.Cmdable, key string, n int64) {
	t.Helper()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return rdb.ZCard(context.Background(), waitKey(key)).Val() == n
	}, fmt.Sprintf("want %d in the queue", n))
}

// Each waiter has a client of its own, as in different processes.
func TestFairIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	const n = 8
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", fair())
	var (
		mu    sync.Mutex
		order []int
		wg    sync.WaitGroup
	)
	for i := range n {
		c := open(t, b.rdb, lock.Options{})
		wg.Go(func() {
			h, err := c.Acquire(context.Background(), "k", fair())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
		queued(t, b.rdb, "k", int64(i+1))
	}
	mustRelease(t, h)
	wg.Wait()
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(order, want) {
		t.Errorf("served in the order %v", order)
	}
	if n := exists(t, b.rdb, waitKey("k"), waiterKey("k")); n != 0 {
		t.Errorf("%d keys of waiters are left", n)
	}
}

// A record says who waits, and lives hardly longer than that is true.
func TestWaitersAreVisible(t *testing.T) {
	t.Parallel()
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair=%t", fair), func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", lease())
			ctx, cancel := context.WithCancel(lock.WithSession(t.Context()))
			done := make(chan error, 1)
			go func() {
				_, err := b.client.Acquire(ctx, "k", lock.Lease{TTL: 30 * time.Second, Fair: fair})
				done <- err
			}()
			testredis.Eventually(t, 5*time.Second, func() bool { return b.rdb.HLen(context.Background(), waiterKey("k")).Val() == 1 }, "recorded")
			for id, text := range b.rdb.HGetAll(t.Context(), waiterKey("k")).Val() {
				w, err := record.ParseWaiter(text)
				if err != nil {
					t.Fatal(err)
				}
				now := b.rdb.Time(t.Context()).Val()
				if id == "" || w.Instance != b.client.Instance() || w.Session != lock.SessionID(ctx) || w.Session == "" {
					t.Errorf("waiter %s: %+v", id, w)
				}
				if since := time.UnixMicro(w.Since); now.Sub(since) < 0 || now.Sub(since) > 10*time.Second {
					t.Errorf("since %s, now %s", since, now)
				}
				if until := time.UnixMilli(w.Until); until.Sub(now) < time.Second || until.Sub(now) > 4*time.Second {
					t.Errorf("until %s, now %s", until, now)
				}
			}
			if n := b.rdb.ZCard(t.Context(), waitKey("k")).Val(); (n == 1) != fair {
				t.Errorf("%d in the queue", n)
			}
			for _, key := range []string{waiterKey("k"), waitKey("k")} {
				if ttl := b.rdb.PTTL(t.Context(), key).Val(); ttl != -2 && (ttl <= 0 || ttl > 9*time.Second) {
					t.Errorf("TTL of %s: %s", key, ttl)
				}
			}
			cancel()
			if err := <-done; !errors.Is(err, lock.ErrHeld) || !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, waitKey("k"), waiterKey("k")) == 0 }, "record is gone")
			mustRelease(t, h)
		})
	}
}

// enqueue puts a waiter into the queue that will never come, as one that was
// killed, and that is believed to live for life.
func enqueue(t *testing.T, rdb redis.Cmdable, key, id string, life time.Duration) {
	t.Helper()
	now := rdb.Time(t.Context()).Val()
	w := record.Waiter{Instance: "dead", Since: now.UnixMicro(), Until: now.Add(life).UnixMilli()}
	if err := rdb.ZAdd(t.Context(), waitKey(key), redis.Z{Score: float64(w.Since), Member: id}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.HSet(t.Context(), waiterKey(key), id, w.Encode()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{waitKey(key), waiterKey(key)} {
		if err := rdb.PExpire(t.Context(), k, life+record.WaiterGrace).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// Fault 7: dead waiters at the head cost a turn each, and only once.
// fault: 7
func TestDeadWaitersCostATurnEach(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{1, 3, 12} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", fair())
			for i := range dead {
				enqueue(t, b.rdb, "k", fmt.Sprintf("DEAD%d", i), time.Minute)
			}
			took, done := make(chan time.Time, 1), make(chan struct{})
			go func() {
				defer close(done)
				h, err := b.client.Acquire(context.Background(), "k", fair())
				took <- time.Now()
				if err != nil {
					t.Error(err)
					return
				}
				if err := h.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			queued(t, b.rdb, "k", int64(dead)+1)
			began := time.Now()
			mustRelease(t, h)
			var cost time.Duration
			select {
			case at := <-took:
				cost = at.Sub(began)
			case <-time.After(30 * time.Second):
				t.Fatal("the live waiter is never served")
			}
			await(t, done, 10*time.Second, "it releases") // before its client is closed
			t.Logf("%d dead waiters cost %s", dead, cost)
			// 200 ms each, and what the machine takes to run the live one.
			limit := time.Duration(dead)*200*time.Millisecond + 150*time.Millisecond
			if least := time.Duration(dead) * record.Turn; cost < least-10*time.Millisecond || cost > limit {
				t.Errorf("took %s, want %s to %s", cost, least, limit)
			}
			if n := b.rdb.ZCard(t.Context(), waitKey("k")).Val(); n != 0 {
				t.Errorf("%d dead waiters are still in the queue", n)
			}
		})
	}
}

// One that has not been heard of costs nothing.
func TestWaiterPastItsTimeIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	enqueue(t, b.rdb, "k", "DEAD", -time.Second)
	began := time.Now()
	h, err := b.client.TryAcquire(t.Context(), "k", lease())
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	mustRelease(t, h)
}

// Nobody overtakes a live head, not even one that does not wait.
func TestEverybodyYieldsToTheQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	enqueue(t, b.rdb, "k", "HEAD", time.Minute)
	_, err := b.client.TryAcquire(t.Context(), "k", lease())
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok || !held.Queued || !held.Until.IsZero() {
		t.Fatalf("got %v", err)
	}
	if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
		t.Errorf("%d keys of a lock that was not taken", n)
	}
}

// A live waiter that came too late for its turn keeps its place.
func TestLateHeadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	// Each is told that it is its turn, and asks: what a release handed over would
	// be lost by who cannot confirm it (TestUnconfirmedGrantEndsByItself).
	b.rdb.Set(t.Context(), grantKey("k"), "another type", time.Minute)
	h := mustAcquire(t, b.client, "k", fair())
	proxy := testredis.NewProxy(t, b.srv.Addr())
	far := b.srv.Options()
	far.Addr = proxy.Addr()
	rdb := redis.NewClient(far)
	t.Cleanup(func() { _ = rdb.Close() })
	slow := open(t, rdb, lock.Options{})
	var both sync.WaitGroup
	hold := func(c *lock.Client) {
		h, err := c.Acquire(context.Background(), "k", fair())
		if err != nil {
			t.Error(err)
			return
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
	both.Go(func() { hold(slow) })
	queued(t, b.rdb, "k", 1)
	head := func() string { return strings.Join(b.rdb.ZRange(t.Context(), waitKey("k"), 0, 0).Val(), "") }
	late := head()
	next := make(chan *lock.Handle, 1)
	go func() {
		h, err := b.client.Acquire(context.Background(), "k", fair())
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	queued(t, b.rdb, "k", 2)
	// Longer than its turn, shorter than its life. Not the replies: what it asked
	// just before must not be served when the lock is released.
	proxy.DelayRequests(400 * time.Millisecond)
	mustRelease(t, h)
	second := <-next // it overtook the slow one
	proxy.DelayRequests(0)
	both.Go(func() { hold(b.client) })
	queued(t, b.rdb, "k", 2)
	// Who is served first is a matter of who comes within their turn; the place is not.
	if now := head(); now != late {
		t.Errorf("%q is at the head, not %q, which came first", now, late)
	}
	mustRelease(t, second)
	both.Wait() // the clients are closed after the test
}

// At the plain end of a lease nobody tells the waiters: they come by themselves,
// in turn.
func TestFairAfterExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	other := setupHolder(t, b.rdb, "k", time.Second)
	enqueue(t, b.rdb, "k", "DEAD", time.Minute)
	began := time.Now()
	h := mustAcquire(t, b.client, "k", fair())
	took := time.Since(began)
	if took > 2500*time.Millisecond {
		t.Errorf("took %s", took)
	}
	if h.Fence() <= other {
		t.Errorf("fence %d after %d", h.Fence(), other)
	}
	mustRelease(t, h)
}

// setupHolder takes a lock that is not renewed and returns its fence.
func setupHolder(t *testing.T, rdb *redis.Client, key string, ttl time.Duration) int64 {
	t.Helper()
	h := mustAcquire(t, open(t, rdb, lock.Options{}), key, lock.Lease{TTL: ttl, NoRenew: true})
	return h.Fence()
}

// A head that gives up passes its turn on.
func TestGivingUpPassesTheTurnOn(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", fair())
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := b.client.Acquire(ctx, "k", fair())
		gone <- err
	}()
	queued(t, b.rdb, "k", 1)
	next := make(chan *lock.Handle, 1)
	go func() {
		h, err := b.client.Acquire(context.Background(), "k", fair())
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	queued(t, b.rdb, "k", 2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	queued(t, b.rdb, "k", 1)
	mustRelease(t, h)
	mustRelease(t, <-next)
}
