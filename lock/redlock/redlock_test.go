package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/lock/redlock"
)

// nodes are independent masters, each behind a network of its own.
type nodes struct {
	srv   []*testredis.Server
	proxy []*testredis.Proxy
	near  []*redis.Client // to look with, past the network
}

func startNodes(t *testing.T, n int) *nodes {
	t.Helper()
	ns := &nodes{}
	for range n {
		srv := testredis.Start(t)
		ns.srv = append(ns.srv, srv)
		ns.proxy = append(ns.proxy, testredis.NewProxy(t, srv.Addr()))
		ns.near = append(ns.near, srv.Client(t))
	}
	return ns
}

// clients returns an application's clients of the nodes.
func (ns *nodes) clients(t *testing.T) []*redis.Client {
	t.Helper()
	var list []*redis.Client
	for i, p := range ns.proxy {
		o := ns.srv[i].Options()
		o.Addr = p.Addr()
		rdb := redis.NewClient(o)
		t.Cleanup(func() { _ = rdb.Close() })
		list = append(list, rdb)
	}
	return list
}

// open returns a Redlock client that has met all nodes.
func (ns *nodes) open(t *testing.T, o redlock.Options) *lock.Client {
	t.Helper()
	if o.NodeTimeout == 0 {
		o.NodeTimeout = time.Second // the machine is shared
	}
	c := openRedlock(t, ns.clients(t), o)
	if o.MinUptime == 0 {
		ns.meet(t, c)
	}
	return c
}

// meet returns when c has a connection to every node.
func (ns *nodes) meet(t *testing.T, c *lock.Client) {
	t.Helper()
	testredis.Eventually(t, 5*time.Second, func() bool {
		h, err := c.TryAcquire(t.Context(), "warm", lock.Lease{TTL: time.Second, NoRenew: true})
		if err != nil {
			return false
		}
		met := ns.on("warm")
		return h.Release(t.Context()) == nil && met == len(ns.srv)
	}, "all nodes are met")
}

func openRedlock(t *testing.T, list []*redis.Client, o redlock.Options) *lock.Client {
	t.Helper()
	c, err := redlock.New(list, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// on says on how many nodes that answer a key is.
func (ns *nodes) on(keys ...string) (n int) {
	for _, rdb := range ns.near {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if k, err := rdb.Exists(ctx, keys...).Result(); err == nil && k > 0 {
			n++
		}
		cancel()
	}
	return n
}

// gone waits until a key and its metadata are on no node.
func (ns *nodes) gone(t *testing.T, key string, within time.Duration) {
	t.Helper()
	testredis.Eventually(t, within, func() bool { return ns.on(key, metaKey(key)) == 0 }, "want "+key+" gone from all nodes")
}

func TestRedlock(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 5)
	c := ns.open(t, redlock.Options{Options: lock.Options{App: "billing", Host: "web-1"}})
	other := ns.open(t, redlock.Options{})
	ctx := t.Context()
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 30 * time.Second, Class: "orders"})
	// A node that is slower than the majority is not waited for.
	testredis.Eventually(t, 5*time.Second, func() bool {
		return ns.on("k") == 5 && ns.on(record.InstanceKey(record.DefaultPrefix, c.Instance())) == 5
	}, "lock and heartbeat are on all nodes")
	if h.Fence() == 0 || h.Validity() < 25*time.Second {
		t.Errorf("fence %d, validity %s", h.Fence(), h.Validity())
	}
	agreed := 0
	for _, rdb := range ns.near {
		m := meta(t, rdb, "k")
		if m == nil || m.ID != h.ID() || m.App != "billing" || m.Class != "orders" {
			t.Fatalf("metadata: %+v", m)
		}
		counter, _ := rdb.Get(ctx, record.FenceKey(record.DefaultPrefix, "k")).Int64()
		if m.Fence == h.Fence() && counter >= h.Fence() {
			agreed++
		}
		if n := exists(t, rdb, record.InstanceKey(record.DefaultPrefix, c.Instance())); n != 1 {
			t.Error("no heartbeat on a node")
		}
	}
	if agreed < 3 {
		t.Errorf("%d nodes know the fence", agreed)
	}
	_, err := other.TryAcquire(ctx, "k", lease())
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok || held.Holder.App != "billing" || held.Holder.Host != "web-1" || held.Holder.ID != h.ID() || time.Until(held.Until) < 20*time.Second {
		t.Errorf("held: %v", err)
	}
	if err := h.Extend(ctx, time.Minute); err != nil || h.Validity() < 55*time.Second {
		t.Errorf("extend: %v, %s", err, h.Validity())
	}
	// A waiter polls, and is not recorded anywhere.
	before := evals(t, ns.near[0])
	got := make(chan error, 1)
	go func() {
		h, err := other.Acquire(ctx, "k", lease())
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	testredis.Eventually(t, 5*time.Second, func() bool {
		return evals(t, ns.near[0]) > before+2
	}, "the waiter looks again and again")
	if n := ns.on(record.Companion(record.DefaultPrefix, record.KindWaiter, "k"), record.Companion(record.DefaultPrefix, record.KindQueue, "k")); n != 0 {
		t.Errorf("waiters are recorded on %d nodes", n)
	}
	mustRelease(t, h)
	if err := <-got; err != nil {
		t.Error(err)
	}
	ns.gone(t, "k", 5*time.Second)
}

// The majority of five, with nodes dead or hung: acquired, renewed and released
// within the budget as long as three answer; else nothing is left behind.
func TestRedlockNodesDown(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "paused"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, 5)
			c := ns.open(t, redlock.Options{Options: lock.Options{Timeout: 700 * time.Millisecond}})
			ctx := t.Context()
			for down := range 4 {
				if down > 0 {
					if srv := ns.srv[5-down]; how == "killed" {
						srv.Kill()
					} else {
						srv.Pause()
					}
				}
				key := fmt.Sprintf("k%d", down)
				began := time.Now()
				h, err := c.TryAcquire(ctx, key, lock.Lease{TTL: 20 * time.Second})
				if down < 3 {
					if err != nil {
						t.Fatalf("%d down: %v", down, err)
					}
					if h.Fence() == 0 {
						t.Errorf("%d down: no fence", down)
					}
					if err := h.Extend(ctx, 0); err != nil {
						t.Errorf("%d down: renew: %v", down, err)
					}
					mustRelease(t, h)
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("%d down: took %s", down, took)
					}
					continue
				}
				// A node that works and is slower than those that say no at once is not
				// waited for: it does not count then.
				failed, ok := errors.AsType[*redlock.QuorumError](err)
				if !ok || failed.Need != 3 || failed.Got > 2 || failed.Got+len(failed.Nodes) != 5 || !failed.Temporary() || failed.Op != "acquire" || failed.Key != key {
					t.Fatalf("%d down: %v", down, err)
				}
				said := map[int]bool{}
				for _, n := range failed.Nodes {
					said[n.Node] = true
					if n.Addr != ns.proxy[n.Node].Addr() || n.Err == nil {
						t.Errorf("node error %+v", n)
					}
				}
				if !said[2] || !said[3] || !said[4] {
					t.Errorf("%d down: %v", down, err)
				}
				if how == "paused" && !errors.Is(err, lock.ErrUnknown) {
					t.Errorf("what nodes said cannot be reached: %v", err)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("failed after %s", took)
				}
			}
			// At once where nodes answer, and on the others when they come back.
			testredis.Eventually(t, 3*time.Second, func() bool {
				return exists(t, ns.near[0], "k3", metaKey("k3"))+exists(t, ns.near[1], "k3", metaKey("k3")) == 0
			}, "nothing is left on nodes that answer")
			for _, srv := range ns.srv[2:] {
				if how == "killed" {
					srv.Restart()
				} else {
					srv.Resume()
				}
			}
			for down := range 4 {
				ns.gone(t, fmt.Sprintf("k%d", down), 8*time.Second)
			}
			testredis.Eventually(t, 8*time.Second, func() bool {
				h, err := c.TryAcquire(ctx, "again", lease())
				return err == nil && h.Release(ctx) == nil
			}, "acquired again")
		})
	}
}

// B24, faults 14 and 21: the acquire took effect on node 3 and nobody was told.
// fault: 21
func TestRedlockReplyLost(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 5)
	// Votes that nobody hears stay for as long as a node may take: longer than the test takes to look.
	c := ns.open(t, redlock.Options{Options: lock.Options{Timeout: 4 * time.Second}, NodeTimeout: 2 * time.Second})
	ctx := t.Context()
	ns.proxy[3].DropReplies(true)
	h := mustAcquire(t, c, "k", lease())
	testredis.Eventually(t, 5*time.Second, func() bool { return ns.on("k") == 5 }, "it takes effect on node 3")
	mustRelease(t, h)
	// A connection that is given up meanwhile is followed by one that cannot say hello.
	ns.proxy[3].Heal()
	ns.gone(t, "k", 10*time.Second)
	// Without a majority.
	ns.meet(t, c)
	for _, p := range ns.proxy[1:4] {
		p.DropReplies(true)
	}
	tried := make(chan error, 1)
	go func() {
		_, err := c.TryAcquire(ctx, "k", lease())
		tried <- err
	}()
	testredis.Eventually(t, 5*time.Second, func() bool { return ns.on("k") == 5 }, "it takes effect on those that are not heard")
	if err := <-tried; !errors.Is(err, lock.ErrUnknown) {
		t.Fatalf("two of five: %v", err)
	}
	for _, p := range ns.proxy[1:4] {
		p.Heal()
	}
	ns.gone(t, "k", 10*time.Second)
}

// Two clients contend: never both, and both get their share.
func TestRedlockContention(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 5)
	type span struct{ from, to time.Time }
	var mu sync.Mutex
	var spans []span
	var last int64
	var wg sync.WaitGroup
	for range 2 {
		c := ns.open(t, redlock.Options{Options: lock.Options{}})
		wg.Go(func() {
			for range 12 {
				h, err := c.Acquire(t.Context(), "k", lock.Lease{TTL: 5 * time.Second, Wait: 30 * time.Second})
				if err != nil {
					t.Error(err)
					return
				}
				from := time.Now()
				mu.Lock()
				if f := h.Fence(); f != 0 && f <= last {
					t.Errorf("fence %d after %d", f, last)
				}
				last = max(last, h.Fence())
				mu.Unlock()
				<-time.After(rand.N(4 * time.Millisecond))
				to := time.Now()
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				spans = append(spans, span{from, to})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(spans) != 24 {
		t.Errorf("%d holds", len(spans))
	}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.from.Before(b.to) && b.from.Before(a.to) {
				t.Errorf("both held it: %v and %v", a, b)
			}
		}
	}
}

// Fences grow while the majority changes from hold to hold.
func TestRedlockFenceGrows(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 5)
	c := ns.open(t, redlock.Options{Options: lock.Options{Timeout: 2 * time.Second}})
	var last int64
	for n := range 15 {
		for _, p := range ns.proxy {
			p.Heal()
		}
		for _, i := range rand.Perm(5)[:rand.N(3)] {
			ns.proxy[i].Cut()
		}
		h := mustAcquire(t, c, "k", lease())
		if f := h.Fence(); f <= last {
			t.Errorf("hold %d: fence %d after %d", n, f, last)
		}
		last = max(last, h.Fence())
		mustRelease(t, h)
	}
}

// Fault 30: nodes that come back at once without their memory let a second client
// in while the first one holds. That is what happens without MinUptime; with it
// they do not vote.
// fault: 30
func TestRedlockRestartWithoutPersistence(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	for _, min := range []time.Duration{0, ttl} {
		t.Run(fmt.Sprint("min uptime ", min), func(t *testing.T) {
			t.Parallel()
			ns := startNodes(t, 3)
			first := ns.open(t, redlock.Options{MinUptime: min})
			second := ns.open(t, redlock.Options{MinUptime: min})
			l := lock.Lease{TTL: ttl, NoRenew: true}
			if min == 0 {
				l.TTL = 30 * time.Second
			}
			var h *lock.Handle
			testredis.Eventually(t, 10*time.Second, func() bool {
				var err error
				h, err = first.TryAcquire(t.Context(), "k", l)
				return err == nil
			}, "the nodes are old enough to vote")
			var wg sync.WaitGroup
			for _, srv := range ns.srv[:2] {
				wg.Go(srv.Restart)
			}
			wg.Wait()
			if min == 0 {
				h2 := mustAcquire(t, second, "k", l)
				if err := h.Err(); err != nil {
					t.Fatalf("the first holder knows: %v", err)
				}
				if h2.Fence() <= h.Fence() {
					t.Error("not even the fence tells them apart")
				}
				return
			}
			_, err := second.TryAcquire(t.Context(), "k", l)
			if h.Validity() == 0 {
				t.Skip("this machine is too slow: the lease is over before the nodes are back")
			}
			failed, ok := errors.AsType[*redlock.QuorumError](err)
			if !ok || failed.Temporary() || !strings.Contains(err.Error(), "MinUptime") {
				t.Fatalf("while the first one holds: %v", err)
			}
			testredis.Eventually(t, 10*time.Second, func() bool {
				_, err := second.TryAcquire(t.Context(), "k", l)
				return err == nil
			}, "they vote again")
			if h.Err() == nil {
				t.Error("the first holder still holds")
			}
		})
	}
}

// Fault 48: what a minority forgets is left; what a majority forgets is lost.
func TestRedlockFlush(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 5)
	events := &recorder{}
	c := ns.open(t, redlock.Options{Options: lock.Options{}})
	c.Observe(events.add)
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 3 * time.Second, RenewFraction: 0.1})
	flush := func(list []*redis.Client) {
		for _, rdb := range list {
			if err := rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush(ns.near[:2])
	events.wait(t, lock.EventRenewed, len(events.of(lock.EventRenewed))+2, 5*time.Second)
	if err := h.Err(); err != nil {
		t.Errorf("after a minority forgot it: %v", err)
	}
	if n := ns.on("k"); n != 3 {
		t.Errorf("on %d nodes: a renewal re-created it", n)
	}
	flush(ns.near[2:3])
	await(t, h.Context().Done(), 3*time.Second, "the hold is lost")
	lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context()))
	if !ok || lost.Reason != lock.ReasonGone {
		t.Errorf("cause %v", context.Cause(h.Context()))
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v", err)
	}
	ns.gone(t, "k", 10*time.Second)
}

// The watchdog goes on with two of three, and ends the hold by the clock with
// one.
func TestRedlockRenewsWithMinorityDown(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	events := &recorder{}
	c := ns.open(t, redlock.Options{Options: lock.Options{}})
	c.Observe(events.add)
	h := mustAcquire(t, c, "k", lock.Lease{TTL: 1500 * time.Millisecond, RenewFraction: 0.2})
	ns.srv[0].Pause()
	events.wait(t, lock.EventRenewed, len(events.of(lock.EventRenewed))+4, 10*time.Second)
	if err := h.Err(); err != nil {
		t.Fatal(err)
	}
	ns.srv[1].Pause()
	await(t, h.Context().Done(), 5*time.Second, "the hold is lost")
	lost, ok := errors.AsType[*lock.LostError](context.Cause(h.Context()))
	if !ok || lost.Reason != lock.ReasonExpired && lost.Reason != lock.ReasonPaused {
		t.Errorf("cause %v", context.Cause(h.Context()))
	}
	if _, ok := errors.AsType[*redlock.QuorumError](lost); !ok {
		t.Errorf("it does not say which nodes: %v", lost)
	}
	ns.srv[0].Resume()
	ns.srv[1].Resume()
}

func TestRedlockSession(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	c := ns.open(t, redlock.Options{})
	ctx := lock.WithSession(t.Context())
	outer, err := c.Acquire(ctx, "k", lease())
	if err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return ns.on("k") == 3 }, "a node that is slower than the majority has it too")
	inner, err := c.Acquire(ctx, "k", lease())
	if err != nil || inner.ID() != outer.ID() || inner.Fence() != outer.Fence() {
		t.Fatalf("again: %v, %v", inner, err)
	}
	mustRelease(t, inner)
	if n := ns.on("k"); n != 3 {
		t.Errorf("on %d nodes after an inner release", n)
	}
	mustRelease(t, outer)
	ns.gone(t, "k", 3*time.Second)
	err = c.Do(ctx, "k", lease(), func(ctx context.Context, fence int64) error {
		if fence == 0 || ctx.Err() != nil {
			t.Errorf("fence %d, %v", fence, ctx.Err())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRedlockCloseWhileHeld(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	c := ns.open(t, redlock.Options{})
	h := mustAcquire(t, c, "k", lease())
	testredis.Eventually(t, 5*time.Second, func() bool {
		return ns.on(record.InstanceKey(record.DefaultPrefix, c.Instance())) == 3
	}, "the heartbeat is written")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(h.Context()), lock.ErrClosed) {
		t.Errorf("cause %v", context.Cause(h.Context()))
	}
	if n := ns.on("k"); n != 3 {
		t.Errorf("on %d nodes: Close leaves locks to their TTL", n)
	}
	if n := ns.on(record.InstanceKey(record.DefaultPrefix, c.Instance())); n != 3 {
		t.Error("a process that holds a lock has deleted its heartbeat")
	}
	idle := ns.open(t, redlock.Options{})
	if err := idle.Close(); err != nil {
		t.Fatal(err)
	}
	if n := ns.on(record.InstanceKey(record.DefaultPrefix, idle.Instance())); n != 0 {
		t.Errorf("heartbeat of an idle process is left on %d nodes", n)
	}
}

// What is wrong on a majority of nodes is returned at once, as each said it.
func TestRedlockServerErrors(t *testing.T) {
	t.Parallel()
	ns := startNodes(t, 3)
	c := ns.open(t, redlock.Options{NodeTimeout: 5 * time.Second})
	ctx := t.Context()
	ns.near[0].RPush(ctx, "k", "a")
	mustRelease(t, mustAcquire(t, c, "k", lease()))
	ns.near[2].RPush(ctx, "k", "a")
	began := time.Now()
	_, err := c.Acquire(ctx, "k", lease())
	failed, ok := errors.AsType[*redlock.QuorumError](err)
	wrong := 0
	if ok {
		for _, n := range failed.Nodes { // one that a loaded machine keeps waiting is no answer
			if reply, ok := errors.AsType[*lock.ServerError](n.Err); ok && reply.Code == lock.CodeWrongType {
				wrong++
			}
		}
	}
	if wrong != 2 || failed.Temporary() {
		t.Errorf("got %v", err)
	}
	wantCode(t, err, lock.CodeWrongType, "WRONGTYPE")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s, a retry loop", took)
	}
	testredis.Eventually(t, 5*time.Second, func() bool { return exists(t, ns.near[1], "k", metaKey("k")) == 0 }, "the vote of the node in order is taken back")
}
