package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// lostReason waits for the end of the handle's context and returns why.
func lostReason(t *testing.T, h *lock.Handle, within time.Duration) lock.Reason {
	t.Helper()
	await(t, h.Context().Done(), within, "context ends")
	lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context()))
	if !ok || !errors.Is(lost, lock.ErrLost) || lost.Key != h.Key() || lost.ID != h.ID() {
		t.Fatalf("cause: %v", context.Cause(h.Context()))
	}
	if !errors.Is(h.Context().Err(), context.Canceled) || h.Validity() != 0 {
		t.Errorf("err %v, validity %s", h.Context().Err(), h.Validity())
	}
	return lost.Reason
}

// Promise: the watchdog keeps the lock over many TTLs, metadata with it, and
// tells what it did.
func TestWatchdogRenewsLockAndMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	// A renewal fails that takes more than a tenth of the TTL.
	const ttl = 5 * time.Second
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: ttl, RenewFraction: 0.1})
	first := meta(t, b.rdb, "k")
	h.Progress()
	b.events.wait(t, lock.EventRenewed, 14, 30*time.Second)
	if err := h.Context().Err(); err != nil {
		t.Fatalf("lost: %v", context.Cause(h.Context()))
	}
	m := meta(t, b.rdb, "k")
	if m.Renewals < 13 || m.Renewed <= first.Renewed || m.Acquired != first.Acquired || m.Fence != first.Fence {
		t.Errorf("metadata after renewals: %+v", m)
	}
	if m.Progress < first.Acquired || m.Progress > m.Renewed {
		t.Errorf("progress %d, acquired %d, renewed %d", m.Progress, first.Acquired, m.Renewed)
	}
	if left := b.rdb.PTTL(t.Context(), metaKey("k")).Val(); left <= record.Grace || left > record.Grace+ttl {
		t.Errorf("TTL of the metadata: %s", left)
	}
	if f := b.events.of(lock.EventRenewFailed); len(f) != 0 {
		t.Errorf("failed renewals: %v", f)
	}
	mustRelease(t, h)
}

// A lease that is not renewed ends by the local clock, before the server's.
func TestNoRenewExpires(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 2 * time.Second, NoRenew: true})
	if m := meta(t, b.rdb, "k"); m.RenewEvery != 0 {
		t.Errorf("renew_every %d of a lease that is not renewed", m.RenewEvery)
	}
	if r := lostReason(t, h, 5*time.Second); r != lock.ReasonExpired && r != lock.ReasonPaused {
		t.Errorf("reason %s", r)
	}
	if err := h.Extend(t.Context(), 0); !errors.Is(err, lock.ErrLost) {
		t.Errorf("extend after the end: %v", err)
	}
}

// B19, B6: extend prolongs, never shortens, and never re-creates.
func TestExtend(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ctx := t.Context()
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 20 * time.Second, NoRenew: true})
	if err := h.Extend(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if v := h.Validity(); v < 50*time.Second {
		t.Errorf("validity %s after an extension to 1m", v)
	}
	if err := h.Extend(ctx, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if v, ttl := h.Validity(), b.rdb.PTTL(ctx, "k").Val(); v < 50*time.Second || ttl < 50*time.Second {
		t.Errorf("a shorter extension shortened: validity %s, TTL %s", v, ttl)
	}
	if err := h.Extend(ctx, time.Millisecond); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("1ms: %v", err)
	}
	b.rdb.Persist(ctx, "k")
	if err := h.Extend(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if ttl := b.rdb.PTTL(ctx, "k").Val(); ttl <= 0 {
		t.Errorf("TTL %s: a lock that was persisted by someone stays without TTL", ttl)
	}
	b.rdb.Del(ctx, "k")
	if err := h.Extend(ctx, 0); !errors.Is(err, lock.ErrLost) {
		t.Errorf("extend of a deleted lock: %v", err)
	}
	if exists(t, b.rdb, "k") != 0 {
		t.Error("extend re-created the lock")
	}
	if r := lostReason(t, h, time.Second); r != lock.ReasonGone {
		t.Errorf("reason %s", r)
	}
}

// B6, fault 49: a lock that others delete, overwrite, flush or turn into
// something else is a loss at the next renewal, and is left alone.
// fault: 48, 49
func TestLossBySomebodyElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm func(*redis.Client) error
		want lock.Reason
	}{
		"deleted":     {func(r *redis.Client) error { return r.Del(context.Background(), "k").Err() }, lock.ReasonGone},
		"flushed":     {func(r *redis.Client) error { return r.FlushAll(context.Background()).Err() }, lock.ReasonGone},
		"renamed":     {func(r *redis.Client) error { return r.Rename(context.Background(), "k", "k2").Err() }, lock.ReasonGone},
		"overwritten": {func(r *redis.Client) error { return r.Set(context.Background(), "k", "mine", 0).Err() }, lock.ReasonTaken},
		"retyped": {func(r *redis.Client) error {
			// At once: a renewal in between would find it gone.
			_, err := r.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
				p.Del(context.Background(), "k")
				return p.HSet(context.Background(), "k", "f", "v").Err()
			})
			return err
		}, lock.ReasonTaken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, lock.Options{})
			h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 3 * time.Second})
			if err := tc.harm(b.rdb); err != nil {
				t.Fatal(err)
			}
			before := b.rdb.Type(t.Context(), "k").Val()
			if r := lostReason(t, h, 5*time.Second); r != tc.want {
				t.Errorf("reason %s, want %s", r, tc.want)
			}
			if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
				t.Errorf("release: %v", err)
			}
			if after := b.rdb.Type(t.Context(), "k").Val(); after != before {
				t.Errorf("the key was a %s and is a %s", before, after)
			}
		})
	}
}

// Fault 19 and SIGSTOP of the server: the context ends before the lease can end
// at the server, with the renewal's error told.
// fault: 19, 23
func TestServerPausedEndsContextInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	ttl := 5 * time.Second // a hundredth of it is what a goroutine may be late
	before := time.Now()
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: ttl})
	// The last renewal that can have been executed was sent before the pause.
	b.srv.Pause()
	paused := time.Now()
	// How late the machine is with a timer is not the lock's.
	late := make(chan time.Duration, 1)
	due := paused.Add(ttl)
	time.AfterFunc(time.Until(due), func() { late <- time.Since(due) })
	reason := lostReason(t, h, 20*time.Second)
	ended := time.Now()
	b.srv.Resume()
	missed := <-late
	if reason != lock.ReasonExpired && !(reason == lock.ReasonPaused && missed > ttl/20) {
		t.Errorf("reason %s, a timer is late by %s", reason, missed)
	}
	if d := ended.Sub(paused); d > ttl+missed+ttl/100 {
		t.Errorf("ended %s after the pause, TTL %s, a timer is late by %s", d, ttl, missed)
	}
	if d := ended.Sub(before); d < ttl/2 {
		t.Errorf("ended %s after the acquire: too early", d)
	}
	if n := len(b.events.of(lock.EventRenewFailed)); n == 0 {
		t.Error("no failed renewal was told")
	}
}

// B2: a connection that is cut inside the lease costs renewals, which are
// counted and told, not the lock.
func TestRenewalResumesAfterReconnect(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	events := &recorder{}
	c := open(t, rdb, lock.Options{})
	c.Observe(events.add)
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 4 * time.Second, RenewFraction: 0.1})
	proxy.Cut()
	events.wait(t, lock.EventRenewFailed, 2, 4*time.Second)
	failed := len(events.of(lock.EventRenewFailed))
	proxy.Heal()
	n := len(events.of(lock.EventRenewed))
	events.wait(t, lock.EventRenewed, n+2, 10*time.Second)
	if err := h.Context().Err(); err != nil {
		t.Fatalf("lost: %v", context.Cause(h.Context()))
	}
	if m := meta(t, b.rdb, "k"); m.RenewFailures < int64(failed) {
		t.Errorf("metadata tells of %d failed renewals, want at least %d", m.RenewFailures, failed)
	}
	mustRelease(t, h)
}

// Fault 22: the caller's pool is one connection, and blocked.
// fault: 22
func TestExhaustedCallerPoolLosesNoLock(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	opt := b.srv.Options()
	opt.PoolSize, opt.MaxActiveConns, opt.PoolTimeout = 1, 1, 100*time.Millisecond
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	events := &recorder{}
	c := open(t, rdb, lock.Options{})
	c.Observe(events.add)
	blocked := make(chan error, 1)
	go func() { blocked <- rdb.BLPop(context.Background(), 0, "nothing").Err() }()
	testredis.Eventually(t, 5*time.Second, func() bool {
		return rdb.Get(context.Background(), "x").Err() != nil && errors.Is(rdb.Get(context.Background(), "x").Err(), redis.ErrPoolTimeout)
	}, "pool is exhausted")
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 30 * time.Second, RenewFraction: 0.01})
	events.wait(t, lock.EventRenewed, 4, 10*time.Second)
	mustRelease(t, h)
	b.rdb.LPush(t.Context(), "nothing", "x")
	if err := <-blocked; err != nil {
		t.Error(err)
	}
}

// Promise: Lease.MaxHold ends renewal and context; the lock is freed by release
// or by its TTL.
func TestMaxHold(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	h := mustAcquire(t, b.client, "k", lock.Lease{TTL: 5 * time.Second, MaxHold: 200 * time.Millisecond})
	if r := lostReason(t, h, 4*time.Second); r != lock.ReasonMaxHold {
		t.Errorf("reason %s", r)
	}
	if !errors.Is(h.Err(), lock.ErrMaxHold) {
		t.Errorf("err: %v", h.Err())
	}
	if m := meta(t, b.rdb, "k"); m.MaxHold != 200 {
		t.Errorf("max_hold %d", m.MaxHold)
	}
	mustRelease(t, h)
	if exists(t, b.rdb, "k") != 0 {
		t.Error("release after MaxHold left the lock")
	}
}

// A forced release is told on the process's channel and ends the hold at once:
// within a second, where the machine lets this test run as often as that once in
// five times.
// fault: 76
func TestForcedReleaseEndsContextAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	other := mustAcquire(t, b.client, "k2", lease())
	channel := record.InstanceKey(record.DefaultPrefix, b.client.Instance())
	testredis.Eventually(t, 5*time.Second, func() bool {
		return b.rdb.PubSubNumSub(context.Background(), channel).Val()[channel] == 1
	}, "subscribed to the instance channel")
	b.rdb.Publish(t.Context(), channel, "something else")
	b.rdb.Publish(t.Context(), channel, "lost unknown")
	best := time.Hour
	for range 5 {
		h := mustAcquire(t, b.client, "k", lease())
		began := time.Now()
		b.rdb.Publish(t.Context(), channel, record.Message{Kind: record.MessageLost, ID: h.ID()}.String())
		if r := lostReason(t, h, 10*time.Second); r != lock.ReasonForced {
			t.Errorf("reason %s", r)
		}
		best = min(best, time.Since(began))
		mustRelease(t, h)
	}
	if best > time.Second {
		t.Errorf("ended after %s at best", best)
	}
	if err := other.Err(); err != nil {
		t.Errorf("another hold ended too: %v", err)
	}
	mustRelease(t, other)
}

func TestParentContextAndValues(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	type key struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
	h, err := b.client.Acquire(parent, "k", lease())
	if err != nil {
		t.Fatal(err)
	}
	child, stop := context.WithCancel(h.Context())
	defer stop()
	if h.Context().Value(key{}) != "v" {
		t.Error("values of the parent are gone")
	}
	why := errors.New("shutdown")
	cancel(why)
	await(t, child.Done(), 5*time.Second, "child of the handle's context ends with the parent")
	if !errors.Is(context.Cause(h.Context()), why) {
		t.Errorf("cause %v", context.Cause(h.Context()))
	}
	if err := h.Err(); err != nil {
		t.Errorf("the end of the caller's context is no loss: %v", err)
	}
	// A release under a context that has ended still releases.
	if err := h.Release(parent); err != nil {
		t.Error(err)
	}
	if exists(t, b.rdb, "k") != 0 {
		t.Error("lock left")
	}
}

// Fault 22, the other way round: a crowd of acquires over a slow network does
// not take the connections that renewals need.
// fault: 22
func TestCrowdOfAcquiresLosesNoLock(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{})
	proxy := testredis.NewProxy(t, b.srv.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr(), PoolSize: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	events := &recorder{}
	c := open(t, rdb, lock.Options{})
	c.Observe(events.add)
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 3 * time.Second, RenewFraction: 0.2})
	proxy.Delay(100 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range 30 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.TryAcquire(ctx, "k", lease()); err == nil {
					return // lost, which is seen below
				}
			}
		})
	}
	testredis.Eventually(t, 20*time.Second, func() bool {
		return h.Err() != nil || len(events.of(lock.EventRenewed)) >= 6
	}, "renewals")
	cancel()
	crowd.Wait()
	if err := h.Err(); err != nil {
		t.Fatalf("%v, failed: %v", err, events.of(lock.EventRenewFailed))
	}
	mustRelease(t, h)
}
