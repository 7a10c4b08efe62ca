package chaos_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/lockcheck"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

const (
	leaseTTL = 400 * time.Millisecond
	// tripTimeout is Options.Timeout of the workers; busyTimeout that of tests in
	// which nothing but a busy machine is slow.
	tripTimeout = 300 * time.Millisecond
	busyTimeout = 3 * time.Second
	// longerThanLease is how long a fault lasts that no lease survives.
	longerThanLease = leaseTTL * 3 / 2
)

// bed is one Redis deployment with its clients, a ledger on a server of its own
// and a record of all that happens.
type bed struct {
	t *testing.T

	srv      *testredis.Server // standalone
	proxy    *testredis.Proxy  // before srv; every other client goes through it
	clock    *testredis.Clock  // srv's, if it can be set
	sentinel *testredis.Sentinel
	cluster  *testredis.Cluster

	admin  redis.UniversalClient // goes round the proxy, and has patience
	ledger *ledger
	store  *testredis.Server
	rec    *lockcheck.Recorder
	locks  []string
	dial   []redis.UniversalClient // what worker i uses is dial[i%len]

	rng      *rand.Rand
	timeout  time.Duration // Options.Timeout of who says none; 0: tripTimeout
	taken    atomic.Int64
	workers  sync.WaitGroup
	end      context.CancelFunc
	children []*process
	spawned  int
}

// topologies make beds.
var topologies = map[string]func(*testing.T) *bed{
	"single":   func(t *testing.T) *bed { return newSingle(t) },
	"aof":      func(t *testing.T) *bed { return newSingle(t, "appendonly yes", "appendfsync everysec") },
	"clock":    newClocked,
	"sentinel": newSentinel,
	"cluster":  newCluster,
}

// newBed returns a bed without a deployment.
func newBed(t *testing.T) *bed {
	t.Helper()
	store := testredis.Start(t)
	b := &bed{
		t: t, store: store, ledger: &ledger{store.Client(t)}, rec: lockcheck.NewRecorder(nil),
		locks: []string{"lock:a", "lock:b", "lock:c"},
		rng:   rand.New(rand.NewPCG(*seed, 2)),
	}
	t.Cleanup(b.keep)
	return b
}

func newSingle(t *testing.T, config ...string) *bed {
	t.Helper()
	b := newBed(t)
	b.serve(testredis.Start(t, testredis.WithConfig(append([]string{"enable-protected-configs yes"}, config...)...)))
	return b
}

// serve makes srv the deployment, with a proxy before it.
func (b *bed) serve(srv *testredis.Server) {
	b.srv, b.proxy = srv, testredis.NewProxy(b.t, srv.Addr())
	through := srv.Options()
	through.Addr = b.proxy.Addr()
	via := redis.NewClient(through)
	b.t.Cleanup(func() { _ = via.Close() })
	b.admin, b.dial = patient(b.t, srv), []redis.UniversalClient{srv.Client(b.t), via}
}

// patient returns a client that waits out what a nemesis does to the server.
func patient(t *testing.T, srv *testredis.Server) *redis.Client {
	t.Helper()
	o := srv.Options()
	o.ReadTimeout, o.MaxRetries = 20*time.Second, 10
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// until is the end of h's validity.
func until(h *lock.Handle) time.Time { return time.Now().Add(h.Validity()) }

// open returns a lock client on connection i, closed at the end of the test.
func (b *bed) open(i int, o lock.Options) *lock.Client {
	b.t.Helper()
	o.Timeout = cmp.Or(o.Timeout, b.timeout, tripTimeout)
	c, err := lock.New(b.dial[i%len(b.dial)], o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Errorf("close: %v", err)
		}
	})
	return c
}

// work starts n workers; every third is rude.
func (b *bed) work(n int) {
	ctx, end := context.WithCancel(context.Background())
	b.end = end
	b.t.Cleanup(b.halt)
	for i := range n {
		w := b.worker(i, fmt.Sprintf("w%d", i))
		w.rude = i%3 == 2
		b.workers.Go(func() { w.run(ctx) })
	}
}

// worker returns one that uses connection i.
func (b *bed) worker(i int, name string) *worker {
	return &worker{
		name: name, client: b.open(i, lock.Options{App: name}), ledger: b.ledger, rec: b.rec,
		locks: b.locks, ttl: leaseTTL,
		rng: rand.New(rand.NewPCG(b.rng.Uint64(), uint64(i))), taken: &b.taken,
	}
}

// spawn starts a child with one worker. Only for a standalone server.
func (b *bed) spawn(change func(*order)) *process {
	b.t.Helper()
	b.spawned++
	o := order{
		Name: fmt.Sprintf("child%d", b.spawned), Server: b.srv.URL(), Ledger: b.store.URL(), Locks: b.locks,
		TTL: leaseTTL, Timeout: tripTimeout, Seed: b.rng.Uint64(),
	}
	if change != nil {
		change(&o)
	}
	p := startChild(b.t, o, b.rec)
	b.children = append(b.children, p)
	return p
}

// halt lets all workers end.
func (b *bed) halt() {
	if b.end != nil {
		b.end()
	}
	b.workers.Wait()
	for _, p := range b.children {
		p.finish()
	}
}

// progress waits until n more acquisitions have succeeded.
func (b *bed) progress(n int64) {
	b.t.Helper()
	goal := b.taken.Load() + n
	testredis.Eventually(b.t, 30*time.Second, func() bool { return b.taken.Load() >= goal },
		fmt.Sprintf("%d more acquisitions", n))
}

// do sends one command of the nemesis.
func (b *bed) do(args ...any) {
	b.t.Helper()
	if err := b.admin.Do(context.Background(), args...).Err(); err != nil && err != redis.Nil {
		b.t.Fatalf("%v: %v", args, err)
	}
}

// on sends one command to one server.
func (b *bed) on(srv *testredis.Server, args ...any) any {
	b.t.Helper()
	c := redis.NewClient(srv.Options())
	defer c.Close()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		b.t.Fatalf("%s: %v: %v", srv.Addr(), args, err)
	}
	return v
}

// set changes settings of the standalone server.
func (b *bed) set(pairs ...any) {
	b.t.Helper()
	b.do(append([]any{"CONFIG", "SET"}, pairs...)...)
}

// setting reads one.
func (b *bed) setting(name string) string {
	b.t.Helper()
	v, err := b.admin.ConfigGet(context.Background(), name).Result()
	if err != nil {
		b.t.Fatal(err)
	}
	return v[name]
}
