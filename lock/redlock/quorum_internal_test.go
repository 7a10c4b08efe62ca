package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/retry"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// fakeNode is one master in memory, so that rounds run in a bubble.
type fakeNode struct {
	mu      sync.Mutex
	value   string
	until   time.Time
	counter int64
	skew    int64           // µs of its clock
	delay   time.Duration   // of each reply, after the effect
	late    time.Duration   // of the effect, whether somebody still waits or not
	hangs   map[string]bool // scripts without effect and reply
	fails   map[string]error
	ids     []string
	ops     []string
}

func (f *fakeNode) set(change func(*fakeNode)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// holder is the value that is held there; "" for none.
func (f *fakeNode) holder() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live()
}

func (f *fakeNode) live() string {
	if time.Now().Before(f.until) {
		return f.value
	}
	return ""
}

func (f *fakeNode) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(f.ops), func(o string) bool { return o != op }))
}

func (f *fakeNode) Eval(ctx context.Context, s *transport.Script, _ []string, args []any) (any, error) {
	f.mu.Lock()
	f.ops = append(f.ops, s.Op)
	hangs, late, delay, fails := f.hangs[s.Op], f.late, f.delay, f.fails[s.Op]
	f.mu.Unlock()
	if fails != nil {
		return nil, fails
	}
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if late > 0 {
		time.AfterFunc(late, func() { _ = f.do(s, args) })
		<-ctx.Done()
		return nil, ctx.Err()
	}
	reply := f.do(s, args)
	// No timer that is over at once: under the race detector the bubble's timers
	// must not run on several threads (a fault of go1.26).
	if delay > 0 && !retry.Pause(ctx, delay) {
		return nil, ctx.Err()
	}
	return reply, nil
}

func (f *fakeNode) Delete(context.Context, string) error { return nil }

func (f *fakeNode) Close() error { return nil }

func (f *fakeNode) do(s *transport.Script, args []any) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	args = settled(args)
	mine := f.live() == transport.Text(args[0])
	switch s.Op {
	case opAcquire:
		f.ids = append(f.ids, transport.Text(args[acquireID]))
		if f.live() != "" && !mine {
			id, _, _ := strings.Cut(strings.TrimPrefix(f.value, "ls2:"), ":")
			return []any{int64(0), time.Until(f.until).Milliseconds(), int64(-1), int64(0), `{"id":"` + id + `","v":2}`}
		}
		f.value, f.until = transport.Text(args[0]), time.Now().Add(milliseconds(args[acquireTTL]))
		f.counter = max(f.counter+1, time.Now().UnixMicro()+f.skew)
		return strconv.FormatInt(f.counter, 10)
	case opBeat:
		return "1000"
	}
	switch {
	case f.live() == "":
		return int64(0)
	case !mine:
		return int64(-1)
	}
	switch s.Op {
	case opRenew:
		f.until = time.Now().Add(milliseconds(args[renewTTL]))
	case opRelease:
		f.until = time.Time{}
	case raiseScript.Op:
		f.counter = max(f.counter, args[2].(int64))
	}
	return int64(1)
}

// council is a Redlock client on fake nodes.
type council struct {
	*lock.Client
	q      *quorum
	nodes  []*fakeNode
	events []lock.Event
	mu     sync.Mutex
}

func newCouncil(t *testing.T, n int, o Options) *council {
	t.Helper()
	nodes := make([]*fakeNode, n)
	for i := range nodes {
		nodes[i] = &fakeNode{skew: int64(i)}
	}
	return joinCouncil(t, nodes, o)
}

// joinCouncil is another client on the same nodes.
func joinCouncil(t *testing.T, nodes []*fakeNode, o Options) *council {
	t.Helper()
	k := &council{nodes: nodes}
	c, err := lock.NewWithBackend(o.Options, o.check(), func(h backend.Host) backend.Backend {
		k.q = newQuorum(h, len(nodes), o.NodeTimeout, o.MinUptime)
		k.q.met.Store(true)
		for i, f := range nodes {
			k.q.nodes[i].addr, k.q.nodes[i].server = fmt.Sprintf("node-%d", i), f
		}
		return k.q
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Client = c
	c.Observe(func(e lock.Event) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.events = append(k.events, e)
	})
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k *council) of(kind lock.EventKind) []lock.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.events), func(e lock.Event) bool { return e.Kind != kind })
}

// free checks that nobody holds anything.
func (k *council) free(t *testing.T, when string) {
	t.Helper()
	for i, f := range k.nodes {
		if v := f.holder(); v != "" {
			t.Errorf("%s: nodes[%d] still holds %s", when, i, v[:12])
		}
	}
}

func wantLost(t *testing.T, h *lock.Handle, want lock.Reason) {
	t.Helper()
	lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context()))
	if !ok || lost.Reason != want {
		t.Errorf("cause %v, want reason %s", context.Cause(h.Context()), want)
	}
}

// B20: validity counts from before the first round was sent, both rounds
// included.
func TestRedlockValidityCountsFromTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 5, Options{NodeTimeout: time.Second})
		for _, f := range k.nodes {
			f.delay = 40 * time.Millisecond
		}
		began := time.Now()
		h, err := k.Acquire(context.Background(), "k", lock.Lease{TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 80*time.Millisecond {
			t.Errorf("two rounds took %s", d)
		}
		if v := h.Validity(); v != 10*time.Second-(10*time.Second/100+2*time.Millisecond)-80*time.Millisecond {
			t.Errorf("validity %s", v)
		}
		if err := h.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		// So late that too little of the lease would be left: given back.
		for _, f := range k.nodes {
			f.set(func(f *fakeNode) { f.delay = 80 * time.Millisecond })
		}
		if _, err := k.Acquire(context.Background(), "k", lock.Lease{TTL: 90 * time.Millisecond, NoRenew: true}); !errors.Is(err, lock.ErrUnknown) {
			t.Errorf("late: %v", err)
		}
		retry.Pause(context.Background(), 20*time.Millisecond)
		k.free(t, "after a late acquire")
	})
}

// A node that hangs costs what the others took once more, not its timeout.
func TestRedlockHungNodeCostsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 5, Options{NodeTimeout: time.Second})
		for _, f := range k.nodes {
			f.delay = 2 * time.Millisecond
		}
		k.nodes[4].hangs = map[string]bool{"acquire": true, "release": true, "renew": true}
		began := time.Now()
		h, err := k.Acquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 10*time.Millisecond {
			t.Errorf("acquire took %s", d)
		}
		began = time.Now()
		if err := h.Extend(context.Background(), 0); err != nil {
			t.Error(err)
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 12*time.Millisecond {
			t.Errorf("renewal and release took %s", d)
		}
	})
}

// dialError is a node that is not there.
func dialError() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
}

func lease10() lock.Lease { return lock.Lease{TTL: 10 * time.Second} }

// The hold stands when the fence cannot be agreed upon, but has none.
func TestRedlockFenceNeedsASecondMajority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 3, Options{})
		k.nodes[0].fails = map[string]error{"raise": errors.New("reset")}
		k.nodes[1].hangs = map[string]bool{"raise": true}
		h, err := k.Acquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		if h.Fence() != 0 || h.Err() != nil {
			t.Errorf("fence %d, %v", h.Fence(), h.Err())
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
		k.nodes[0].set(func(f *fakeNode) { f.fails = nil })
		h, err = k.Acquire(context.Background(), "k", lease10())
		if err != nil || h.Fence() == 0 {
			t.Errorf("one of two suffices: %v, %v", h, err)
		}
	})
}

// B29: what is decided is returned at once; late answers find their place and
// nobody is left waiting. (The bubble fails on a goroutine that never ends.)
func TestRedlockFailsFast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 5, Options{NodeTimeout: 5 * time.Second})
		other := joinCouncil(t, k.nodes, Options{NodeTimeout: 5 * time.Second})
		if _, err := other.Acquire(context.Background(), "k", lease10()); err != nil {
			t.Fatal(err)
		}
		for _, f := range k.nodes[3:] {
			f.set(func(f *fakeNode) { f.hangs = map[string]bool{"acquire": true} })
		}
		began := time.Now()
		_, err := k.TryAcquire(context.Background(), "k", lease10())
		held, ok := errors.AsType[*lock.HeldError](err)
		if !ok || held.Holder.ID == "" {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d > 5*time.Millisecond {
			t.Errorf("took %s", d)
		}
	})
}

// Who gives up is not kept by nodes that hang, and leaves nothing.
func TestRedlockCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 3, Options{NodeTimeout: 5 * time.Second})
		for _, f := range k.nodes[1:] {
			f.late = 300 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := k.Acquire(ctx, "k", lease10())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Millisecond {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		for _, f := range k.nodes[1:] {
			f.set(func(f *fakeNode) { f.late = 0 })
		}
		retry.Pause(context.Background(), 3*time.Second)
		k.free(t, "after the acquires were executed late")
	})
}

// An id is never used again, since what was given back under it may free a later
// success: neither by a retry nor by a waiter.
func TestRedlockNeverRepeatsAnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 3, Options{})
		other := joinCouncil(t, k.nodes, Options{})
		h, err := other.Acquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if _, err := k.Acquire(ctx, "k", lease10()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("got %v", err)
		}
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
		for _, f := range k.nodes[1:] {
			f.set(func(f *fakeNode) { f.fails = map[string]error{"acquire": errors.New("reset")} })
		}
		if _, err := k.Acquire(context.Background(), "k", lease10()); !errors.Is(err, lock.ErrUnknown) {
			t.Errorf("got %v", err)
		}
		k.nodes[0].set(func(f *fakeNode) {
			slices.Sort(f.ids)
			if n := len(f.ids); n < 20 || len(slices.Compact(f.ids)) != n {
				t.Errorf("%d attempts, of which %d had an id of their own", n, len(slices.Compact(f.ids)))
			}
		})
		retry.Pause(context.Background(), 2*time.Second)
		k.free(t, "after failed attempts")
	})
}

// B24: a node whose replies are lost is freed too: of an acquire that comes late,
// and until the TTL where nothing is heard.
func TestRedlockJanitor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 3, Options{})
		// The acquire is executed after the release.
		k.nodes[2].late = 500 * time.Millisecond
		h, err := k.Acquire(context.Background(), "k", lock.Lease{TTL: 10 * time.Second, Class: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		k.nodes[2].set(func(f *fakeNode) { f.late = 0 })
		if err := h.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		retry.Pause(context.Background(), 1500*time.Millisecond)
		k.free(t, "after a late acquire")
		if done := k.of(lock.EventCleaned); len(done) != 1 || done[0].Class != "orders" || done[0].ID != h.ID() {
			t.Errorf("cleaned: %+v", done)
		}
		// The reply of a release is lost, and the node is away for longer than the
		// lease.
		h, err = k.Acquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		k.nodes[2].set(func(f *fakeNode) { f.hangs = map[string]bool{"release": true} })
		began := time.Now()
		if err := h.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		before := k.nodes[2].count("release")
		retry.Pause(context.Background(), 15*time.Second)
		failed := k.of(lock.EventCleanFailed)
		if len(failed) != 1 || !strings.Contains(failed[0].Err.Error(), "nodes[2] node-2") {
			t.Fatalf("clean failed: %+v", failed)
		}
		if n := k.nodes[2].count("release") - before; n < 8 || n > 40 {
			t.Errorf("%d tries", n)
		}
		if took := failed[0].Took; took < 9*time.Second || took > 12*time.Second {
			t.Errorf("given up after %s, %s after the release", took, time.Since(began))
		}
		after := k.nodes[2].count("release")
		retry.Pause(context.Background(), 30*time.Second)
		if n := k.nodes[2].count("release"); n != after {
			t.Error("still at it")
		}
	})
}

// A cleaner asks a node that is away no more often for many locks than for one.
func TestRedlockJanitorIsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 3, Options{})
		k.nodes[0].hangs = map[string]bool{"release": true}
		for range 100 {
			h, err := k.Acquire(context.Background(), "k", lease10())
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Release(context.Background()); err != nil {
				t.Fatal(err)
			}
			k.nodes[0].set(func(f *fakeNode) { f.until = time.Time{} })
		}
		before := k.nodes[0].count("release")
		retry.Pause(context.Background(), 5*time.Second)
		if n := k.nodes[0].count("release") - before; n > 25 {
			t.Errorf("%d requests in 5 s", n)
		}
		k.nodes[0].set(func(f *fakeNode) { f.hangs = nil })
		retry.Pause(context.Background(), 2*time.Second)
		if n := len(k.of(lock.EventCleaned)); n != 100 {
			t.Errorf("%d cleaned", n)
		}
	})
}

// Fault 30: a node that was started too short a time ago has no vote, for
// acquires and for renewals.
// fault: 30
func TestRedlockMinUptime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 3, Options{MinUptime: time.Minute})
		meet := func(i int, run string, up time.Duration) {
			if err := k.q.introduce(k.q.nodes[i], run, time.Now().Add(-up)); err != nil {
				t.Fatal(err)
			}
		}
		meet(0, "a", time.Hour)
		meet(1, "b", 59*time.Second)
		meet(2, "c", 5*time.Second)
		_, err := k.TryAcquire(context.Background(), "k", lease10())
		failed, ok := errors.AsType[*QuorumError](err)
		if !ok || failed.Temporary() || failed.Got != 1 || failed.Need != 2 || len(failed.Nodes) != 2 ||
			!strings.Contains(err.Error(), "nodes[2] node-2: up for 5s, votes after 1m0s (redlock.Options.MinUptime)") {
			t.Fatalf("got %v", err)
		}
		k.free(t, "after votes that did not count")
		retry.Pause(context.Background(), time.Second)
		h, err := k.TryAcquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		meet(1, "d", 0) // restarted, with what it had
		if err := h.Extend(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "node-1: up for 0s") {
			t.Errorf("renewal by one vote and two that do not count: %v", err)
		}
		retry.Pause(context.Background(), 10*time.Second)
		wantLost(t, h, lock.ReasonExpired)
		// A lease that a node could forget and vote against is refused.
		if _, err := k.Acquire(context.Background(), "k", lock.Lease{TTL: 2 * time.Minute}); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("longer than MinUptime: %v", err)
		}
		retry.Pause(context.Background(), time.Minute)
		h, err = k.TryAcquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Extend(context.Background(), 2*time.Minute); !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("extended beyond MinUptime: %v", err)
		}
	})
}

// A majority that says no ends the hold; nodes that never had the lock count as
// such, since nothing re-creates it there.
func TestRedlockRenewalByMajority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newCouncil(t, 5, Options{})
		for _, f := range k.nodes[3:] {
			f.fails = map[string]error{"acquire": dialError(), "renew": dialError(), "release": dialError()}
		}
		h, err := k.Acquire(context.Background(), "k", lease10())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Extend(context.Background(), 0); err != nil {
			t.Error(err)
		}
		k.nodes[0].set(func(f *fakeNode) { f.until = time.Time{} })
		if err := h.Extend(context.Background(), 0); !errors.Is(err, lock.ErrLost) {
			t.Errorf("two of five: %v", err)
		}
		wantLost(t, h, lock.ReasonGone)
		if err := h.Release(context.Background()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
		k.free(t, "after the release of a lost lock")
	})
}

// Property: fences grow from hold to hold, whichever nodes answer, whatever
// their clocks say, and whatever they have forgotten as a minority.
func TestRedlockFenceGrowsOverMajorities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
		k := newCouncil(t, 5, Options{})
		for _, f := range k.nodes {
			f.skew = rng.Int64N(int64(time.Hour / time.Microsecond))
		}
		var last int64
		holds := 0
		for n := range 400 {
			for _, f := range k.nodes {
				f.set(func(f *fakeNode) {
					f.fails = nil
					f.skew += rng.Int64N(2_000_000) - 1_000_000
				})
			}
			for _, i := range rng.Perm(5)[:rng.IntN(4)] {
				k.nodes[i].set(func(f *fakeNode) {
					f.fails = map[string]error{[]string{"acquire", "raise"}[rng.IntN(2)]: dialError()}
				})
			}
			h, err := k.TryAcquire(context.Background(), "k", lease10())
			if err != nil {
				if _, ok := errors.AsType[*QuorumError](err); !ok {
					t.Fatal(err)
				}
				continue
			}
			holds++
			if f := h.Fence(); f != 0 {
				if f <= last {
					t.Fatalf("hold %d: fence %d after %d", n, f, last)
				}
				last = f
			}
			if err := h.Release(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if holds < 200 {
			t.Errorf("only %d holds", holds)
		}
	})
}
