package chaos_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
)

// processNemeses break the processes that take locks.
var processNemeses = []nemesis{
	{name: "stopped processes", topology: "single", strays: true, prepare: spawnChildren, strike: stopChildren},
	{name: "killed processes", topology: "single", strays: true, killed: true, prepare: spawnChildren, strike: killChildren},
}

func spawnChildren(b *bed) {
	for range 3 {
		b.spawn(nil)
	}
	b.spawn(func(o *order) { o.Rude = true })
}

func stopChildren(b *bed) {
	for _, d := range []time.Duration{leaseTTL / 4, 2 * leaseTTL} {
		for _, p := range b.children {
			p.stop()
		}
		pause(d)
		for _, p := range b.children {
			p.cont()
		}
		pause(leaseTTL / 4)
	}
}

func killChildren(b *bed) {
	for range 2 {
		old := slices.Clone(b.children)
		b.children = nil
		for _, p := range old {
			pause(time.Duration(b.rng.IntN(30)) * time.Millisecond)
			p.kill()
		}
		spawnChildren(b)
		pause(leaseTTL)
	}
}

// Faults 1 and 2: processes that hold locks, wait for them, or have a request
// under way are stopped, shorter and longer than a lease, and go on.
// fault: 1
func TestStoppedProcesses(t *testing.T) {
	storm(t, named("stopped processes"))
}

// Faults 6 and 7: the same are killed.
// fault: 6, 7
func TestKilledProcesses(t *testing.T) {
	storm(t, named("killed processes"))
}

// Fault 7: the first k in the queue are killed or stopped: who lives is served
// within 200 ms for each of them.
// fault: 7
func TestDeadWaitersInQueue(t *testing.T) {
	t.Parallel()
	eachDeath(t, deadWaiters)
}

// Fault 7: all in the queue are killed or stopped, the lock is given back, and
// only then somebody comes who lives: the same.
// fault: 7
func TestAllWaitersInQueueAreDead(t *testing.T) {
	t.Parallel()
	eachDeath(t, allWaitersDead)
}

// eachDeath has one and three waiters killed and stopped.
func eachDeath(t *testing.T, run func(b *bed, k int, end func(*process))) {
	t.Helper()
	for _, k := range []int{1, 3} {
		for how, end := range map[string]func(*process){"killed": (*process).kill, "stopped": (*process).stop} {
			t.Run(fmt.Sprintf("%d %s", k, how), func(t *testing.T) {
				t.Parallel()
				run(newSingle(t), k, end)
			})
		}
	}
}

// queueOf lets a client of this process hold the one lock of b, with k
// children in its queue.
func queueOf(b *bed, k int, lease lock.Lease) (h *lock.Handle, waiting func(n int)) {
	t := b.t
	t.Helper()
	b.locks = b.locks[:1]
	key := b.locks[0]
	queue := record.Companion(record.DefaultPrefix, record.KindQueue, key)
	waiting = func(n int) {
		t.Helper()
		testredis.Eventually(t, 20*time.Second, func() bool {
			return b.admin.ZCard(t.Context(), queue).Val() == int64(n)
		}, fmt.Sprintf("%d wait in the queue", n))
	}
	h, err := b.open(0, lock.Options{Timeout: busyTimeout}).Acquire(t.Context(), key, lease)
	if err != nil {
		t.Fatal(err)
	}
	for i := range k {
		b.spawn(func(o *order) { o.Patient, o.TTL = true, 10*time.Second })
		waiting(i + 1)
	}
	return h, waiting
}

func deadWaiters(b *bed, k int, end func(*process)) {
	t := b.t
	last := b.open(0, lock.Options{Timeout: busyTimeout})
	lease := lock.Lease{TTL: 10 * time.Second}
	h, waiting := queueOf(b, k, lease)
	channel := record.InstanceKey(record.DefaultPrefix, last.Instance())
	key := b.locks[0]
	type served struct {
		h   *lock.Handle
		err error
		at  time.Time
	}
	done := make(chan served, 1)
	go func() {
		h, err := last.Acquire(t.Context(), key, lease)
		done <- served{h, err, time.Now()}
	}()
	waiting(k + 1)
	testredis.Eventually(t, 20*time.Second, func() bool {
		return b.admin.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
	}, "the last one listens: else it comes within a second")
	for _, p := range b.children {
		end(p)
	}
	released := time.Now()
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	// What the library promises, and what a busy machine takes on top.
	if took, most := got.at.Sub(released), time.Duration(k)*200*time.Millisecond; took > most+150*time.Millisecond {
		t.Errorf("served %s after the release, behind %d dead waiters: want at most %s", took, k, most)
	}
	if err := got.h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for _, p := range b.children {
		p.kill()
	}
	b.rec.Killed()
}

func allWaitersDead(b *bed, k int, end func(*process)) {
	t := b.t
	late := b.open(0, lock.Options{Timeout: busyTimeout})
	lease := lock.Lease{TTL: 10 * time.Second}
	// What is promised, of which a busy machine may spoil a try.
	most := time.Duration(k) * 200 * time.Millisecond
	for try := 1; ; try++ {
		h, waiting := queueOf(b, k, lease)
		for _, p := range b.children {
			end(p)
		}
		waiting(k)
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		came := time.Now()
		// How late the machine is with a timer is not the lock's.
		lag := make(chan time.Duration, 1)
		due := came.Add(time.Duration(k) * record.Turn)
		time.AfterFunc(time.Until(due), func() { lag <- time.Since(due) })
		h, err := late.Acquire(t.Context(), b.locks[0], lease)
		if err != nil {
			t.Fatal(err)
		}
		took, spoilt := time.Since(came), <-lag
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		for _, p := range b.children {
			p.kill()
		}
		b.children = nil
		b.rec.Killed()
		t.Logf("served %s after it came, behind %d dead waiters", took, k)
		if took <= most+spoilt {
			return
		}
		if try == 5 {
			t.Fatalf("served %s after it came, behind %d dead waiters: want at most %s in one of %d tries", took, k, most, try)
		}
	}
}
