package lock_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/faults"
	"github.com/locksteward/locksteward/internal/redisproc"
	"github.com/locksteward/locksteward/internal/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// A holder that does not run for a tenth of its TTL, every second or so, keeps
// its lock over several leases, as one hold.
func TestStallsLoseNothing(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 4)
	b := setup(t, lock.Options{})
	const ttl = 1500 * time.Millisecond
	cmd, lines := startChild(t, b.srv.URL(), "job", ttl)
	if got := line(t, lines, 20*time.Second); !strings.HasPrefix(got, "held ") {
		t.Fatalf("child: %s", got)
	}
	first := meta(t, b.rdb, "job")
	tick := time.NewTicker(ttl / 10)
	defer tick.Stop()
	for range 8 { // 150 ms of each 450
		if err := redisproc.Freeze(cmd.Process); err != nil {
			t.Fatal(err)
		}
		<-tick.C
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		<-tick.C
		<-tick.C
	}
	m := meta(t, b.rdb, "job")
	if m == nil || m.ID != first.ID || m.Fence != first.Fence || m.Lost != nil {
		t.Fatalf("after the stalls: %+v, before: %+v", m, first)
	}
	if m.Renewals < 4 || exists(t, b.rdb, "job") != 1 {
		t.Errorf("%d renewals, want one each half second or so", m.Renewals)
	}
}

// The lock of a killed holder is free when its last lease is over, not later, and
// who waits has it within 50 ms of that; nothing of the dead one stays for good.
func TestWaiterOfAKilledHolderIsServedAtOnce(t *testing.T) {
	t.Parallel()
	faults.Covers(t, 6)
	b := setup(t, lock.Options{PollInterval: time.Minute})
	const ttl = time.Second
	cmd, lines := startChild(t, b.srv.URL(), "job", ttl)
	if got := line(t, lines, 20*time.Second); !strings.HasPrefix(got, "held ") {
		t.Fatalf("child: %s", got)
	}
	served := make(chan time.Time, 1)
	var h *lock.Handle
	go func() {
		var err error
		if h, err = b.client.Acquire(t.Context(), "job", lease()); err != nil {
			t.Error(err)
		}
		served <- time.Now()
	}()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return exists(t, b.rdb, record.Companion(record.DefaultPrefix, record.KindWaiter, "job")) == 1
	}, "somebody waits")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = cmd.Process.Wait()
	left := b.rdb.PTTL(t.Context(), "job").Val()
	free := time.Now().Add(left)
	if left <= 0 || left > ttl {
		t.Fatalf("%s of the lease are left after the kill", left)
	}
	at := <-served
	// What is promised, and what a busy machine takes on top.
	if late := at.Sub(free); late > 50*time.Millisecond+150*time.Millisecond {
		t.Errorf("served %s after the lease was over", late)
	}
	if h == nil {
		return
	}
	if m := meta(t, b.rdb, "job"); m == nil || m.Lost == nil {
		t.Errorf("the next hold does not know of the lost one: %+v", m)
	}
	mustRelease(t, h)
	for _, key := range b.rdb.Keys(t.Context(), "*").Val() {
		if b.rdb.PTTL(t.Context(), key).Val() == -1 && !strings.HasPrefix(key, "locksteward:fence:") {
			t.Errorf("key %s stays for good", key)
		}
	}
}
