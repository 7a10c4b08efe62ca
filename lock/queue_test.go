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

func queueKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindQueue, key)
}

func waiterKey(key string) string {
	return record.Companion(record.DefaultPrefix, record.KindWaiter, key)
}

// queued waits until n stand in the queue of key.
func queued(t *testing.T, rdb redis.Cmdable, key string, n int64) {
	t.Helper()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return rdb.ZCard(context.Background(), queueKey(key)).Val() == n
	}, fmt.Sprintf("want %d in the queue", n))
}

// Each waiter has a client of its own, as in different processes.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	const n = 8
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	var (
		mu    sync.Mutex
		order []int
		wg    sync.WaitGroup
	)
	for i := range n {
		c := open(t, b.rdb, lock.Options{})
		wg.Go(func() {
			h, err := c.Acquire(context.Background(), "k", lease())
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
		(&bundle{rdb: b.rdb, client: c}).listening(t) // a lock is handed over only to who listens
	}
	mustRelease(t, h)
	wg.Wait()
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(order, want) {
		t.Errorf("served in the order %v", order)
	}
	if n := exists(t, b.rdb, queueKey("k"), waiterKey("k")); n != 0 {
		t.Errorf("%d keys of waiters are left", n)
	}
}

// A record says who waits, and lives hardly longer than that is true.
func TestWaitersAreVisible(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	ctx, cancel := context.WithCancel(lock.WithSession(t.Context()))
	done := make(chan error, 1)
	go func() {
		_, err := b.client.Acquire(ctx, "k", lease())
		done <- err
	}()
	queued(t, b.rdb, "k", 1)
	for id, text := range b.rdb.HGetAll(t.Context(), waiterKey("k")).Val() {
		w, err := record.ParseWaiter(text)
		if err != nil {
			t.Fatal(err)
		}
		now := b.rdb.Time(t.Context()).Val()
		if id == "" || w.Instance != b.client.Instance() || w.Session == "" {
			t.Errorf("waiter %s: %+v", id, w)
		}
		if since := time.UnixMicro(w.Since); now.Sub(since) < 0 || now.Sub(since) > 10*time.Second {
			t.Errorf("since %s, now %s", since, now)
		}
		if until := time.UnixMilli(w.Until); until.Sub(now) < time.Second || until.Sub(now) > 4*time.Second {
			t.Errorf("until %s, now %s", until, now)
		}
	}
	for _, key := range []string{waiterKey("k"), queueKey("k")} {
		if ttl := b.rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > 9*time.Second {
			t.Errorf("TTL of %s: %s", key, ttl)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, lock.ErrHeld) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, b.rdb, queueKey("k"), waiterKey("k")) == 0 }, "record is gone")
	mustRelease(t, h)
}

// enqueue puts a waiter into the queue whose process was killed, and that is
// believed to live for life. With the nonce "-" no release hands it the lock.
func enqueue(t *testing.T, rdb redis.Cmdable, key, id, process, nonce string, life time.Duration) {
	t.Helper()
	now := rdb.Time(t.Context()).Val()
	w := record.Waiter{Instance: process, Since: now.UnixMicro(), Until: now.Add(life).UnixMilli()}
	text := fmt.Sprintf(`%s 150 %s %s "id":"%s","v":2}`, w.Encode(), nonce, record.Value(id, "secret"), id)
	for _, err := range []error{
		rdb.ZAdd(t.Context(), queueKey(key), redis.Z{Score: float64(w.Since), Member: id}).Err(),
		rdb.HSet(t.Context(), waiterKey(key), id, text).Err(),
		rdb.PExpire(t.Context(), queueKey(key), life+time.Minute).Err(),
		rdb.PExpire(t.Context(), waiterKey(key), life+time.Minute).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Fault 7: waiters of processes that are dead cost nothing: the release hands the
// lock to the first that can be reached.
// fault: 7
func TestDeadWaitersCostNothing(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{1, 12, 100} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", lease())
			for i := range dead {
				enqueue(t, b.rdb, "k", fmt.Sprintf("DEAD%d", i), "dead", "N", time.Minute)
			}
			next := wanting(b.client)
			queued(t, b.rdb, "k", int64(dead)+1)
			b.listening(t) // a lock is handed over only to who listens
			mustRelease(t, h)
			released := b.rdb.Time(t.Context()).Val()
			second := served(t, next)
			// By the server's clock: how late this process learns of it is the machine's.
			cost := time.UnixMicro(second.Fence()).Sub(released)
			t.Logf("%d dead waiters cost %s", dead, cost)
			if cost > record.Turn {
				t.Errorf("took %s, want less than a turn", cost)
			}
			mustRelease(t, second)
			if n := exists(t, b.rdb, queueKey("k"), waiterKey("k"), "k", metaKey("k")); n != 0 {
				t.Errorf("%d keys are left", n)
			}
		})
	}
}

// Waiters that are notified and do not come cost a turn each, once.
func TestHungWaitersCostATurnEach(t *testing.T) {
	t.Parallel()
	for _, hung := range []int{1, 3} {
		t.Run(fmt.Sprint(hung), func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", lease())
			words := promise(t, b.rdb, "k", "HUNG0")
			for i := 1; i < hung; i++ {
				promise(t, b.rdb, "k", fmt.Sprintf("HUNG%d", i))
			}
			next := wanting(b.client)
			queued(t, b.rdb, "k", int64(hung)+1)
			b.listening(t) // else it comes within a second
			mustRelease(t, h)
			second := served(t, next)
			// By the server's clock, from when the first of them was handed the lock.
			var first record.Message
			for first.Kind != record.MessageHand || first.ID != "HUNG0" {
				first, _ = record.ParseMessage((<-words).Payload)
			}
			cost := time.Duration(second.Fence()-first.Fence) * time.Microsecond
			t.Logf("%d hung waiters cost %s", hung, cost)
			// What the machine takes to run the live one is on top.
			least := time.Duration(hung) * record.Turn
			if cost < least-10*time.Millisecond || cost > least+time.Duration(hung)*50*time.Millisecond+200*time.Millisecond {
				t.Errorf("took %s, want about %s", cost, least)
			}
			mustRelease(t, second)
			if n := exists(t, b.rdb, queueKey("k"), waiterKey("k"), "k", metaKey("k")); n != 0 {
				t.Errorf("%d keys are left", n)
			}
		})
	}
}

// One that has not been heard of costs nothing.
func TestWaiterPastItsTimeIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	enqueue(t, b.rdb, "k", "DEAD", "dead", "-", -time.Second)
	mustRelease(t, h)
	h = mustAcquire(t, b.client, "k", lease())
	mustRelease(t, h)
	if n := exists(t, b.rdb, queueKey("k"), waiterKey("k"), metaKey("k")); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Nobody overtakes a live head, not even one that does not wait.
func TestEverybodyYieldsToTheQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	// Each has a turn before anybody else may come: time enough for a busy machine to try.
	for i := range 10 {
		enqueue(t, b.rdb, "k", fmt.Sprintf("HEAD%d", i), "far", "-", time.Minute)
	}
	mustRelease(t, h)
	_, err := b.client.TryAcquire(t.Context(), "k", lease())
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok || !held.Queued || !held.Until.IsZero() {
		t.Fatalf("got %v", err)
	}
	if n := exists(t, b.rdb, "k"); n != 0 {
		t.Error("the lock was taken")
	}
	// When those before do not come within their turns, the next one may.
	next := mustAcquire(t, b.client, "k", lease())
	if m := meta(t, b.rdb, "k"); m.ID != next.ID() || m.Lost != nil {
		t.Errorf("metadata %+v", m)
	}
	mustRelease(t, next)
}

// A live waiter that came too late for its turn keeps its place.
func TestLateHeadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lease())
	proxy := testredis.NewProxy(t, b.srv.Addr())
	far := b.srv.Options()
	far.Addr = proxy.Addr()
	rdb := redis.NewClient(far)
	t.Cleanup(func() { _ = rdb.Close() })
	slow := open(t, rdb, lock.Options{})
	var both sync.WaitGroup
	hold := func(c *lock.Client) {
		h, err := c.Acquire(context.Background(), "k", lease())
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
	head := func() string { return strings.Join(b.rdb.ZRange(t.Context(), queueKey("k"), 0, 0).Val(), "") }
	late := head()
	next := make(chan *lock.Handle, 1)
	go func() {
		h, err := b.client.Acquire(context.Background(), "k", lease())
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	queued(t, b.rdb, "k", 2)
	// Longer than its turn, shorter than its life. Not the replies: what it asked
	// just before must not be served when the lock is released.
	proxy.DelayRequests(1500 * time.Millisecond)
	// It comes by itself: what a release hands over is lost by a waiter that cannot
	// confirm it (TestUnconfirmedGrantEndsByItself).
	withoutHandoff(t, b.rdb, "k", late)
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

// withoutHandoff makes the waiter id one that no release hands the lock to.
func withoutHandoff(t *testing.T, rdb redis.Cmdable, key, id string) {
	t.Helper()
	words := strings.SplitN(rdb.HGet(t.Context(), waiterKey(key), id).Val(), " ", 8)
	words[5] = "-"
	if err := rdb.HSet(t.Context(), waiterKey(key), id, strings.Join(words, " ")).Err(); err != nil {
		t.Fatal(err)
	}
}

// At the plain end of a lease nobody tells the waiters: they come by themselves,
// in turn.
func TestQueueAfterExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	other := setupHolder(t, b.rdb, "k", time.Second)
	enqueue(t, b.rdb, "k", "DEAD", "dead", "N", time.Minute)
	began := time.Now()
	h := mustAcquire(t, b.client, "k", lease())
	took := time.Since(began)
	if took > 2500*time.Millisecond {
		t.Errorf("took %s", took)
	}
	if h.Fence() <= other {
		t.Errorf("fence %d after %d", h.Fence(), other)
	}
	if n := b.rdb.ZCard(t.Context(), queueKey("k")).Val(); n != 0 {
		t.Errorf("%d dead waiters are still in the queue", n)
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
	h := mustAcquire(t, b.client, "k", lease())
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := b.client.Acquire(ctx, "k", lease())
		gone <- err
	}()
	queued(t, b.rdb, "k", 1)
	next := make(chan *lock.Handle, 1)
	go func() {
		h, err := b.client.Acquire(context.Background(), "k", lease())
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
