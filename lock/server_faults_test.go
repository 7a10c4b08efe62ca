package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// A server that takes no writes, for each of its reasons: a typed error in time,
// nothing is left, and with the reason gone all is as before.
// fault: 44
func TestServerThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code        lock.Code
		break_, fix [][]any
	}{
		"MISCONF": {
			lock.CodeOther,
			[][]any{{"config", "set", "save", "3600 1", "dir", "/proc"}, {"bgsave"}},
			[][]any{{"config", "set", "save", ""}},
		},
		"NOREPLICAS": {
			lock.CodeUnavailable,
			[][]any{{"config", "set", "min-replicas-to-write", "1"}},
			[][]any{{"config", "set", "min-replicas-to-write", "0"}},
		},
		"MASTERDOWN": {
			lock.CodeUnavailable,
			[][]any{{"config", "set", "replica-serve-stale-data", "no"}, {"replicaof", "127.0.0.1", "1"}},
			[][]any{{"replicaof", "no", "one"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "MASTERDOWN" {
				testredis.Since(t, 7, 0, "min-replicas-to-write that holds in scripts, and CONFIG SET of several settings,")
			}
			b := setup(t, lock.Options{Timeout: time.Second}, testredis.WithConfig("enable-protected-configs yes"))
			ctx := t.Context()
			do := func(cmds [][]any) {
				t.Helper()
				for _, cmd := range cmds {
					if err := b.rdb.Do(ctx, cmd...).Err(); err != nil {
						t.Fatalf("%v: %v", cmd, err)
					}
				}
			}
			mustRelease(t, mustAcquire(t, b.client, "warm", lease()))
			do(tc.break_)
			testredis.Eventually(t, 10*time.Second, func() bool {
				return redis.HasErrorPrefix(b.rdb.Set(ctx, "other", "x", time.Minute).Err(), name) || redis.HasErrorPrefix(b.rdb.Get(ctx, "k").Err(), name)
			}, "the server takes no writes")
			began := time.Now()
			_, err := b.client.TryAcquire(ctx, "k", lease())
			wantCode(t, err, tc.code, name)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			do(tc.fix)
			if n := exists(t, b.rdb, "k", metaKey("k")); n != 0 {
				t.Errorf("%d keys left", n)
			}
			testredis.Eventually(t, 5*time.Second, func() bool {
				h, err := b.client.TryAcquire(ctx, "k", lease())
				return err == nil && h.Release(ctx) == nil
			}, "it does not work again by itself")
		})
	}
}

// A server that cannot save refuses PING too: a holder hears all the same that its
// lock was taken from it.
// fault: 44, 76
func TestServerThatCannotSaveIsHeard(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "CONFIG SET of several settings")
	b := setup(t, lock.Options{}, testredis.WithConfig("enable-protected-configs yes"))
	ctx := t.Context()
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: time.Hour, NoRenew: true})
	instance := record.InstanceKey(record.DefaultPrefix, b.client.Instance())
	listening := func() bool { return b.rdb.PubSubNumSub(ctx, instance).Val()[instance] == 1 }
	testredis.Eventually(t, 5*time.Second, listening, "the holder listens")
	before := stat(t, b.rdb, "total_connections_received:")
	for _, cmd := range [][]any{{"config", "set", "save", "3600 1", "dir", "/proc"}, {"bgsave"}} {
		if err := b.rdb.Do(ctx, cmd...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// Longer than it takes to ask a connection that says nothing.
	testredis.Eventually(t, 20*time.Second, func() bool { return stat(t, b.rdb, "total_error_replies:") >= 2 }, "a PING is refused")
	if !listening() {
		t.Error("the subscriber was given up")
	}
	if n := stat(t, b.rdb, "total_connections_received:") - before; n > 3 {
		t.Errorf("%d more connections: the subscriber comes and goes", n)
	}
	if err := b.rdb.Publish(ctx, instance, record.Message{Kind: record.MessageLost, ID: h.ID()}.String()).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, h.Context().Done(), 5*time.Second, "the holder is told")
}

// stat reads a number of INFO stats.
func stat(t *testing.T, rdb *redis.Client, name string) int {
	t.Helper()
	var n int
	info, err := rdb.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, _ = fmt.Sscan(rest, &n)
		}
	}
	return n
}

// While writes are paused no call hangs, a lock whose time is over is over, and
// what had been sent takes effect once at most when the pause ends.
// fault: 45
func TestPausedWritesHaveOneEffect(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "CLIENT PAUSE WRITE")
	b := setup(t, lock.Options{Timeout: time.Second})
	other := open(t, b.rdb, lock.Options{Timeout: 20 * time.Second})
	ctx := t.Context()
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 1500 * time.Millisecond, NoRenew: true})
	mustRelease(t, mustAcquire(t, b.client, "k2", lease()))
	if err := b.rdb.Do(ctx, "client", "pause", 6000, "WRITE").Err(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := b.client.TryAcquire(ctx, "k2", lease()); !errors.Is(err, lock.ErrUnknown) {
		t.Errorf("an acquire during the pause: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	await(t, h.Context().Done(), 3*time.Second, "the lease ends")
	testredis.Eventually(t, time.Second, func() bool { return errors.Is(b.rdb.Get(ctx, "k").Err(), redis.Nil) }, "it is over at the server too")
	// Both wait for the end of the pause, and one of them gets it.
	won := make(chan error, 2)
	for range 2 {
		go func() {
			h, err := other.TryAcquire(context.Background(), "k", lease())
			if err == nil {
				if n := b.rdb.Get(context.Background(), "k").Val(); !strings.Contains(n, h.ID()) {
					err = fmt.Errorf("the lock is held as %q", h.ID())
				}
				err = errors.Join(err, h.Release(context.Background()))
			}
			won <- err
		}()
	}
	for range 2 {
		if err := <-won; err != nil && !errors.Is(err, lock.ErrHeld) {
			t.Error(err)
		}
	}
	b.events.wait(t, lock.EventCleaned, 1, 10*time.Second)
	if n := exists(t, b.rdb, "k", "k2", metaKey("k"), metaKey("k2")); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

// All locks vanish at once: every one of their holders knows at its next renewal.
// fault: 48
func TestEveryHolderKnowsOfAFlush(t *testing.T) {
	t.Parallel()
	for _, harm := range [][]any{{"flushall"}, {"flushdb", "async"}, {"swapdb", 0, 1}} {
		t.Run(fmt.Sprint(harm[0]), func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			const locks = 50
			var held []*lock.Handle
			for i := range locks {
				held = append(held, mustAcquire(t, b.client, fmt.Sprint("k", i), lock.Lease{TTL: 9 * time.Second}))
			}
			if err := b.rdb.Do(t.Context(), harm...).Err(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for _, h := range held {
				if r := lostReason(t, h, 20*time.Second); r != lock.ReasonGone {
					t.Errorf("reason %s", r)
				}
			}
			if took := time.Since(began); took > 7500*time.Millisecond {
				t.Errorf("the last one knew after %s, one renewal is 3 s", took)
			}
			if n := exists(t, b.rdb, "k0", "k1"); n != 0 {
				t.Error("a renewal made a lock again")
			}
		})
	}
}

// What a third party does to a lock: it is lost, or as it was, and nothing of
// somebody else is touched by its end.
// fault: 49
func TestOthersMoveAndCopyLocks(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "COPY")
	b := setup(t, lock.Options{})
	ctx := t.Context()
	do := func(args ...any) {
		t.Helper()
		if err := b.rdb.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	once := lock.Lease{TTL: time.Minute, NoRenew: true}

	h := mustAcquire(t, b.client, "moved", once)
	do("rename", "moved", "elsewhere")
	if err := h.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a renamed lock: %v", err)
	}
	if exists(t, b.rdb, "elsewhere") != 1 {
		t.Error("the release deleted what it does not know")
	}
	mustRelease(t, mustAcquire(t, b.client, "moved", once)) // it is free

	h = mustAcquire(t, b.client, "under", once)
	do("set", "over", "somebody", "px", 60_000)
	do("rename", "over", "under")
	if err := h.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lock that another was renamed over: %v", err)
	}
	if b.rdb.Get(ctx, "under").Val() != "somebody" {
		t.Error("the release deleted another's lock")
	}

	h = mustAcquire(t, b.client, "original", once)
	do("copy", "original", "copy")
	mustRelease(t, h)
	if exists(t, b.rdb, "copy") != 1 || exists(t, b.rdb, "original") != 0 {
		t.Error("the release took the copy for the original")
	}

	h = mustAcquire(t, b.client, "restored", once)
	dump := b.rdb.Dump(ctx, "restored").Val()
	mustRelease(t, h)
	if err := b.rdb.Restore(ctx, "restored", 3*time.Second, dump).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.TryAcquire(ctx, "restored", once); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("a lock that came back is somebody's until its time is over: %v", err)
	}
	next, err := b.client.Acquire(ctx, "restored", lock.Lease{TTL: time.Minute, NoRenew: true, Wait: 20 * time.Second})
	if err != nil || next.Fence() <= h.Fence() {
		t.Fatalf("afterwards: %v", err)
	}
	mustRelease(t, next)

	h = mustAcquire(t, b.client, "persisted", lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.01})
	do("persist", "persisted")
	// The answer to one that was executed before may still be on its way.
	b.events.wait(t, lock.EventRenewed, len(b.events.of(lock.EventRenewed))+2, 20*time.Second)
	if ttl := b.rdb.PTTL(ctx, "persisted").Val(); ttl <= 0 {
		t.Errorf("TTL %s after a renewal", ttl)
	}
	do("pexpire", "persisted", 1)
	if r := lostReason(t, h, 5*time.Second); r != lock.ReasonGone {
		t.Errorf("reason %s", r)
	}
}

// A server that changes its name, crashes and comes back, over and over, by itself or
// started anew: the same client takes locks each time.
// fault: 50
func TestServerThatCrashesOverAndOver(t *testing.T) {
	t.Parallel()
	var quick []testredis.Option // a search of its memory for faults would take the most of a crash
	if testredis.Version(t).AtLeast(6, 2) {
		quick = append(quick, testredis.WithConfig("crash-memcheck-enabled no"))
	}
	b := setup(t, lock.Options{Timeout: 2 * time.Second}, quick...)
	ctx := t.Context()
	last := int64(0)
	works := func(what string) {
		t.Helper()
		var h *lock.Handle
		testredis.Eventually(t, 10*time.Second, func() bool {
			var err error
			h, err = b.client.TryAcquire(ctx, "k", lock.Lease{TTL: 2 * time.Second})
			return err == nil
		}, "no lock after "+what)
		if h.Fence() <= last {
			t.Errorf("after %s: fence %d, before %d", what, h.Fence(), last)
		}
		last = h.Fence()
		mustRelease(t, h)
	}
	for round := range 100 {
		if err := b.rdb.Do(ctx, "debug", "change-repl-id").Err(); err != nil {
			t.Fatal(err)
		}
		if round%10 == 9 {
			works("change-repl-id")
		}
	}
	o := b.srv.Options()
	o.MaxRetries = -1 // a crash that is asked for again is another one
	once := redis.NewClient(o)
	defer func() { _ = once.Close() }()
	// One that recovers executes itself anew, as the same process; the other is gone.
	crashes := []struct {
		verb string
		back func()
	}{
		{"segfault", b.srv.Restart},
		{"crash-and-recover", func() {
			testredis.Eventually(t, 20*time.Second, func() bool { return b.rdb.Ping(context.Background()).Err() == nil }, "it recovers")
		}},
	}
	run := func() string {
		t.Helper()
		info, err := b.rdb.InfoMap(ctx, "server").Result()
		if err != nil {
			t.Fatal(err)
		}
		return info["Server"]["run_id"]
	}
	runs := map[string]bool{run(): true}
	for round := range 100 {
		crash := crashes[min(round%4, 1)] // the first one takes longer: the server writes a report
		if !testredis.Reexecutes() {
			crash = crashes[0]
		}
		h := mustAcquire(t, b.client, "held", lock.Lease{TTL: 10 * time.Second, RenewFraction: 0.01})
		_ = once.Do(ctx, "debug", crash.verb).Err() // no answer comes
		crash.back()
		runs[run()] = true
		if r := lostReason(t, h, 10*time.Second); r != lock.ReasonGone {
			t.Errorf("%s: reason %s", crash.verb, r)
		}
		works(crash.verb)
	}
	if len(runs) != 101 {
		t.Errorf("the server lived %d times, want 101: not every crash was one", len(runs))
	}
}
