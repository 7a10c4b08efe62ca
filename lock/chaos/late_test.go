package chaos_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// lateWrite takes a lock and writes, lets lose take it away on the server, waits
// until another client has it and has written, and then writes again as the
// first holder, which never looked. The store without fences takes that write:
// the control, without which no other test here would mean anything. The fenced
// one refuses it. soon says that the first holder must then know of its loss
// within one renewal.
func lateWrite(b *bed, soon bool, lose func()) {
	b.t.Helper()
	ctx := context.Background()
	first, second := b.worker(0, "first"), b.worker(0, "second")
	first.client, second.client = b.open(0, lock.Options{Timeout: busyTimeout}), b.open(0, lock.Options{Timeout: busyTimeout})
	first.locks, second.locks = b.locks[:1], b.locks[:1]
	first.ttl, second.ttl = 2*time.Second, 2*time.Second
	take := func(w *worker) (h *lock.Handle, hold lockcheck.Hold) {
		b.t.Helper()
		testredis.Eventually(b.t, 20*time.Second, func() bool {
			h, hold = w.acquire(ctx)
			return h != nil
		}, w.name+" gets the lock")
		return h, hold
	}
	h1, hold1 := take(first)
	b.rec.Wrote(b.ledger.write(ctx, hold1))
	lose()
	h2, hold2 := take(second)
	if hold2.Fence <= hold1.Fence {
		b.t.Errorf("fence %d of the second holder, %d of the first", hold2.Fence, hold1.Fence)
	}
	b.rec.Wrote(b.ledger.write(ctx, hold2))
	fenced, unfenced := b.ledger.write(ctx, hold1)
	b.rec.Wrote(fenced, unfenced)
	if fenced.Outcome != lockcheck.Rejected {
		b.t.Errorf("late write to the fenced store: %s, want it rejected", fenced.Outcome)
	}
	if unfenced.Outcome != lockcheck.Accepted {
		b.t.Errorf("late write to the store without fences: %s, want it accepted", unfenced.Outcome)
	}
	if soon {
		testredis.Eventually(b.t, first.ttl/3+2*time.Second, func() bool { return h1.Context().Err() != nil },
			"the first holder knows of its loss")
	}
	// The release of who has lost it touches nothing of who has it. Who does not
	// know of a failover yet may not be able to ask.
	if err := h1.Release(ctx); err == nil || soon && !errors.Is(err, lock.ErrLost) {
		b.t.Errorf("release of the first holder: %v, want ErrLost", err)
	}
	if err := h2.Err(); err != nil {
		b.t.Errorf("second holder: %v", err)
	}
	if err := h2.Extend(ctx, 0); err != nil {
		b.t.Errorf("second holder extends: %v", err)
	}
	second.release(ctx, h2, hold2)
	h := b.rec.History()
	if v := lockcheck.Store(h.Fenced); len(v) != 0 {
		b.t.Errorf("fenced store: %v", v)
	}
	if v := lockcheck.Store(h.Unfenced); len(v) == 0 {
		b.t.Error("the control shows no violation: this suite would not see one")
	}
	if v := lockcheck.Fences(h); len(v) != 0 {
		b.t.Errorf("fences: %v", v)
	}
	b.leftovers()
}

// Faults 27, 28, 29, 43, 48, 49: a standalone server that loses a lock, and what
// a holder that does not look does then to a store with fences and to one
// without.
// fault: 27, 28, 29
func TestLateWriteAfterLossOnServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		topology string
		lose     func(*bed)
	}{
		"restart empty":         {"single", restartEmpty},
		"restart, AOF cut off":  {"aof", loseAOF},
		"restart, old snapshot": {"single", loseSnapshot},
		"evicted, volatile":     {"single", func(b *bed) { evict(b, "volatile-lru") }},
		"evicted, allkeys":      {"single", func(b *bed) { evict(b, "allkeys-random") }},
		"FLUSHALL":              {"single", func(b *bed) { b.do("FLUSHALL") }},
		"FLUSHDB":               {"single", func(b *bed) { b.do("FLUSHDB") }},
		"SWAPDB":                {"single", func(b *bed) { b.do("SWAPDB", 0, 1) }},
		"DEL":                   {"single", func(b *bed) { b.do("DEL", b.locks[0]) }},
		"RENAME":                {"single", func(b *bed) { b.do("RENAME", b.locks[0], "elsewhere") }},
		"PEXPIRE":               {"single", func(b *bed) { b.do("PEXPIRE", b.locks[0], 1) }},
		"MOVE":                  {"single", func(b *bed) { b.do("MOVE", b.locks[0], 1) }},
		"another type, deleted": {"single", func(b *bed) {
			b.do("DEL", b.locks[0])
			b.do("RPUSH", b.locks[0], "x")
			b.do("DEL", b.locks[0])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := topologies[tc.topology](t)
			lateWrite(b, true, func() { tc.lose(b) })
		})
	}
}

// loseAOF restarts the server with an append only file from before the lock.
func loseAOF(b *bed) {
	dir := b.setting("dir")
	b.srv.Kill()
	truncateAOF(b, dir, 0)
	b.srv.Restart()
}

// loseSnapshot restarts the server with a snapshot from before the lock: one
// that has another lock, which was released since and is back.
func loseSnapshot(b *bed) {
	ctx := context.Background()
	c := b.open(0, lock.Options{Timeout: busyTimeout})
	old, err := c.Acquire(ctx, "lock:resurrected", lock.Lease{TTL: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	// The snapshot is to be older than the lock that is lost.
	b.do("DEL", b.locks[0])
	b.do("SAVE")
	if err := old.Release(ctx); err != nil {
		b.t.Fatal(err)
	}
	b.srv.Kill()
	b.srv.Restart()
	var held *lock.HeldError
	if _, err := c.TryAcquire(ctx, "lock:resurrected", lock.Lease{TTL: time.Minute}); !errors.As(err, &held) || held.Holder.ID != old.ID() {
		b.t.Errorf("the released lock after the restart: %v, want it held by its old hold", err)
	}
	// Its old holder cannot have it again: it has told it as released.
	if err := old.Extend(ctx, 0); !errors.Is(err, lock.ErrReleased) {
		b.t.Errorf("extend a released lock that is back: %v", err)
	}
	b.do("DEL", "lock:resurrected")
}

// Fault 31: a Sentinel failover to a replica that has not heard of the lock.
// fault: 31, 32
func TestLateWriteAfterSentinelFailover(t *testing.T) {
	t.Parallel()
	b := newSentinel(t)
	old := b.sentinel.Master()
	heir := b.other(old)
	b.sever(old, heir)
	lateWrite(b, false, func() { b.elect(old, heir) })
	old.Restart()
	b.demoted(old)
}

// Fault 31: the same in a Cluster.
// fault: 31
func TestLateWriteAfterClusterFailover(t *testing.T) {
	t.Parallel()
	b := newCluster(t)
	old := b.cluster.NodeOf(b.locks[0])
	heir := b.heir(old)
	b.sever(old, heir)
	lateWrite(b, false, func() { b.promote(old, heir) })
}

// Fault 10: the server's clock jumps beyond the lease.
// fault: 10
func TestLateWriteAfterClockStep(t *testing.T) {
	b := newClocked(t)
	lateWrite(b, true, func() { b.clock.Step(time.Minute) })
}

// Fault 11: the server's clock goes back by an hour while the lock is free: the
// fence grows all the same.
// fault: 11
func TestFenceGrowsWhenClockGoesBack(t *testing.T) {
	b := newClocked(t)
	lateWrite(b, true, func() {
		b.clock.Step(-time.Hour)
		b.do("DEL", b.locks[0])
	})
}

// Fault 1: a holder is stopped past its TTL, another takes the lock and writes,
// and the first goes on where it was: in the middle of its writes.
// fault: 1
func TestLateWriteOfStoppedHolder(t *testing.T) {
	t.Parallel()
	b := newSingle(t)
	b.locks = b.locks[:1]
	p := b.spawn(func(o *order) { o.Rude, o.Hold, o.TTL = true, 20*time.Second, time.Second })
	wrote := func(outcome lockcheck.Outcome) bool {
		for _, w := range b.rec.History().Fenced {
			if w.Client == "child1" && w.Outcome == outcome {
				return true
			}
		}
		return false
	}
	testredis.Eventually(t, 20*time.Second, func() bool { return wrote(lockcheck.Accepted) }, "the child writes")
	p.stop()
	w := b.worker(0, "second")
	w.ttl = 2 * time.Second
	var h *lock.Handle
	var hold lockcheck.Hold
	testredis.Eventually(t, 20*time.Second, func() bool {
		h, hold = w.acquire(t.Context())
		return h != nil
	}, "the lock of the stopped child is free")
	b.rec.Wrote(b.ledger.write(t.Context(), hold))
	p.cont()
	testredis.Eventually(t, 20*time.Second, func() bool { return wrote(lockcheck.Rejected) }, "the child goes on writing, too late")
	if err := h.Err(); err != nil {
		t.Errorf("second holder: %v", err)
	}
	w.release(t.Context(), h, hold)
	p.finish()
	if v := lockcheck.Store(b.rec.History().Unfenced); len(v) == 0 {
		t.Error("the control shows no violation: this suite would not see one")
	}
	b.judge(nemesis{})
}
