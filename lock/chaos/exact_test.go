package chaos_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// Fault 2: a process is stopped when the server has taken the lock for it and
// the reply lies in its buffers. When it goes on, its lease is over and another
// has the lock: it must not take the old reply for one.
// fault: 2
func TestReplyReadTooLate(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	b.locks = b.locks[:1]
	key := b.locks[0]
	// Long enough to stop the child meanwhile. Four replies, those to a new connection and to an unknown script among
	// them, come within the lease.
	b.proxy.Delay(500 * time.Millisecond)
	p := b.spawn(func(o *order) {
		o.Server, o.TTL, o.Timeout = "redis://"+b.proxy.Addr()+"/0", 2700*time.Millisecond, 5*time.Second
	})
	testredis.Eventually(t, 20*time.Second, func() bool {
		return b.admin.Exists(context.Background(), key).Val() == 1
	}, "the server has taken the lock")
	p.stop()
	w := b.worker(0, "second")
	w.ttl = 5 * time.Second
	var h *lock.Handle
	var hold lockcheck.Hold
	testredis.Eventually(t, 20*time.Second, func() bool {
		h, hold = w.acquire(t.Context())
		return h != nil
	}, "the lock of the stopped child is free")
	p.cont()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return slices.ContainsFunc(b.rec.History().Attempts, func(a lockcheck.Attempt) bool { return a.Client != w.name })
	}, "the child's acquire has failed")
	for _, one := range b.rec.History().Holds {
		if one.Client != "second" {
			t.Errorf("%s, while %s", one, hold)
		}
	}
	w.release(t.Context(), h, hold)
	b.proxy.Heal()
	b.halt()
	b.judge(nemesis{strays: true})
}

// Fault 16, 14: a reply is lost and the request is sent again: it takes the lock
// once, with one fence, and whoever is next gets the next one.
// fault: 14, 16
func TestRepeatedAcquireHasOneEffect(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	c := b.open(1, lock.Options{Timeout: busyTimeout})
	key := b.locks[0]
	warm, err := c.Acquire(t.Context(), "warm", lock.Lease{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := warm.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	fences := map[int64]bool{}
	for range 20 {
		b.proxy.CutAfterReplies(0)
		h, err := c.Acquire(t.Context(), key, lock.Lease{TTL: time.Minute, Wait: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		text, err := b.admin.Get(t.Context(), "locksteward:hold:{"+key+"}").Result()
		if m, bad := record.Decode(text); err != nil || bad != nil || m.Fence != h.Fence() {
			t.Errorf("fence %d, the server has %q, %v", h.Fence(), text, err)
		}
		if fences[h.Fence()] {
			t.Errorf("fence %d twice", h.Fence())
		}
		fences[h.Fence()] = true
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.leftovers()
}

// Fault 19: a holder that is cut off knows of its loss before the server lets
// the lock go.
// fault: 19
func TestCutOffHolderKnowsFirst(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	c := b.open(1, lock.Options{Timeout: busyTimeout})
	const ttl = time.Second
	h, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.Cut()
	freed := make(chan int64)
	go func() {
		defer close(freed)
		for {
			n, err := b.admin.Exists(context.Background(), b.locks[0]).Result()
			if now := lockcheck.Now(); err != nil || n == 0 {
				freed <- now
				return
			}
		}
	}()
	ended := make(chan int64, 1)
	stop := context.AfterFunc(h.Context(), func() { ended <- lockcheck.Now() })
	defer stop()
	free := <-freed
	if err := h.Context().Err(); err == nil {
		t.Error("the server has let the lock go and the holder has it")
	}
	// Done is closed by a timer, which may be late; the margin is 1 % and 2 ms.
	if end := <-ended; end > free {
		t.Logf("Done was closed %dus after the end of the lock: this machine is busy", (end-free)/1000)
	}
	if err := h.Err(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("handle: %v, want lost", err)
	}
	b.proxy.Heal()
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want lost", err)
	}
	b.leftovers()
}

// Fault 23: a server that sleeps for less than the lease costs no lock.
// fault: 23
func TestShortSleepLosesNothing(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	c := b.open(0, lock.Options{Timeout: busyTimeout})
	h, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: 6 * time.Second, RenewFraction: 1.0 / 6})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.do("DEBUG", "SLEEP", "1.5")
		before := until(h)
		testredis.Eventually(t, 10*time.Second, func() bool { return until(h).After(before.Add(100 * time.Millisecond)) },
			"the lease is renewed after the sleep")
	}
	if err := h.Err(); err != nil {
		t.Errorf("handle: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// Fault 22: two hundred lockers on a pool of one, over a slow network: those who
// find no connection share the next round trip and are answered, and a held lock
// is renewed and released all the same.
// fault: 22
func TestExhaustedPool(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	o := b.srv.Options()
	o.Addr, o.PoolSize = b.proxy.Addr(), 1
	rdb := redis.NewClient(o)
	defer rdb.Close()
	b.dial = []redis.UniversalClient{rdb}
	c := b.open(0, lock.Options{Timeout: busyTimeout})
	const ttl = 3 * time.Second
	h, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	b.proxy.Delay(40 * time.Millisecond)
	began := time.Now()
	var crowd sync.WaitGroup
	var mu sync.Mutex
	count := map[string]int{}
	for range 200 {
		crowd.Go(func() {
			_, err := c.TryAcquire(context.Background(), b.locks[0], lock.Lease{TTL: time.Minute})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, lock.ErrHeld):
				count["held"]++
			default:
				t.Errorf("locker: %v", err)
			}
		})
	}
	crowd.Wait()
	testredis.Eventually(t, 10*time.Second, func() bool { return time.Since(began) > ttl+ttl/4 }, "longer than the lease")
	if count["held"] != 200 {
		t.Errorf("answers %v: want an answer for each, since those who find no connection share the next one", count)
	}
	if err := h.Err(); err != nil {
		t.Errorf("held lock: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	b.proxy.Heal()
	b.leftovers()
}

// Fault 51: a list in place of a lock is a typed error at once, and stays.
// fault: 51
func TestOtherTypeIsNotTouched(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	c := b.open(0, lock.Options{Timeout: busyTimeout})
	b.do("RPUSH", b.locks[0], "a", "b")
	began := time.Now()
	_, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: time.Second})
	if reply, ok := errors.AsType[*lock.ServerError](err); !ok || reply.Code != lock.CodeWrongType {
		t.Errorf("got %v, want the code wrong_type", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s: a retry loop", took)
	}
	if n := b.admin.LLen(t.Context(), b.locks[0]).Val(); n != 2 {
		t.Errorf("the list has %d elements, want 2", n)
	}
}

// Faults 1, 27, 43, 48: the renewal of a lock that vanished never makes it again,
// with or without the metadata.
// fault: 1, 27, 43, 48
func TestRenewalMakesNothing(t *testing.T) {
	t.Parallel()
	for name, vanish := range map[string]func(*bed){
		"deleted":   func(b *bed) { b.do("DEL", b.locks[0]) },
		"flushed":   func(b *bed) { b.do("FLUSHALL") },
		"evicted":   func(b *bed) { evict(b, "volatile-ttl") },
		"restarted": restartEmpty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSingle(t)
			c := b.open(0, lock.Options{Timeout: busyTimeout})
			h, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.02})
			if err != nil {
				t.Fatal(err)
			}
			vanish(b)
			testredis.Eventually(t, 10*time.Second, func() bool { return h.Context().Err() != nil }, "the holder knows")
			lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context()))
			if !ok || lost.Reason != lock.ReasonGone {
				t.Errorf("cause %v, want gone", context.Cause(h.Context()))
			}
			if n := b.admin.Exists(t.Context(), b.locks[0]).Val(); n != 0 {
				t.Error("the lock is there again")
			}
			if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("release: %v, want lost", err)
			}
			b.leftovers()
		})
	}
}

// Fault 14, 21: an acquire takes effect and its reply never comes: the caller is
// told that nobody knows, and the lock is free again long before its TTL.
// fault: 14, 21
func TestUnknownAcquireIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, lease := range map[string]lock.Lease{
		"plain": {TTL: time.Minute},
		"wait":  {TTL: time.Minute, Wait: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSingle(t)
			c := b.open(1, lock.Options{Timeout: time.Second})
			warm, err := c.Acquire(t.Context(), "warm", lease)
			if err != nil {
				t.Fatal(err)
			}
			if err := warm.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.proxy.DropReplies(true)
			if h, err := c.Acquire(t.Context(), b.locks[0], lease); !errors.Is(err, lock.ErrUnknown) {
				t.Fatalf("got %v, %v; want ErrUnknown", h, err)
			}
			// The lock may be gone again; its fence stays.
			fence := record.FenceKey(record.DefaultPrefix, b.locks[0])
			if n := b.admin.Exists(t.Context(), fence).Val(); n != 1 {
				t.Fatal("the acquire has not taken effect: this tests nothing")
			}
			b.proxy.Heal()
			testredis.Eventually(t, 20*time.Second, func() bool {
				return b.admin.Exists(t.Context(), b.locks[0]).Val() == 0
			}, "the lock is given back")
			b.leftovers()
		})
	}
}
