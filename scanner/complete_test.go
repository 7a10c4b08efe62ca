package scanner_test

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

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
)

// fill writes n keys that are no locks.
func fill(t testing.TB, c redis.Cmdable, n int) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := from; i < min(n, from+1000); i++ {
				p.Set(t.Context(), fmt.Sprintf("filler:%d", i), "x", 0)
			}
			return nil
		})
		must(t, err)
	}
}

// slow is a configuration under which a sweep of 20,000 keys takes at least a
// third of a second, so that something can happen meanwhile.
func slow(url string) rig {
	r := fast(url)
	r.scan = scanner.Config{Pace: pace.Config{Idle: 0.03, Busy: 0.03}}
	r.connect.ReadTimeout = 300 * time.Millisecond
	r.connect.DialTimeout = 300 * time.Millisecond
	r.gate = new(gate)
	r.page = r.gate.page
	return r
}

// gate stops a sweep in the middle: it would have ended when a test comes to it that stood
// still for a moment.
type gate struct {
	mu    sync.Mutex
	when  func(pages int) bool // says at which page it shuts; nil: it stays open
	pages int
	// stopped is closed when a pass waits at the gate, open when it may go on.
	stopped, open chan struct{}
}

// page is called by each pass of a sweep with each page of names.
func (g *gate) page() {
	g.mu.Lock()
	open := g.open
	if g.pages++; g.when != nil && g.when(g.pages) {
		close(g.stopped)
		g.when = nil
	}
	stopped := g.stopped
	g.mu.Unlock()
	if stopped == nil {
		return
	}
	select {
	case <-stopped:
		<-open
	default:
	}
}

// arm has the gate shut when it is time. The gate opens again by open.
func (g *gate) arm(when func(pages int) bool) (stopped <-chan struct{}, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.when, g.pages, g.stopped, g.open = when, 0, make(chan struct{}), opened
	return g.stopped, sync.OnceFunc(func() { close(opened) })
}

// scans returns how many SCANs the server has run.
func scans(t testing.TB, c *redis.Client) int64 {
	t.Helper()
	stats, err := c.Info(t.Context(), "commandstats").Result()
	must(t, err)
	_, rest, ok := strings.Cut(stats, "cmdstat_scan:calls=")
	if !ok {
		return 0
	}
	var n int64
	_, err = fmt.Sscan(strings.Split(rest, ",")[0], &n)
	must(t, err)
	return n
}

// during runs a sweep and calls do once it has read three pages of names. It goes on
// when do has returned.
func during(t *testing.T, s *scanner.Scanner, g *gate, do func()) (got locksteward.Sweep, err error) {
	t.Helper()
	return duringFrom(t, s, g, func(pages int) bool { return pages == 3 }, do)
}

// duringFrom is during that says itself when do is called.
func duringFrom(t *testing.T, s *scanner.Scanner, g *gate, when func(pages int) bool, do func()) (got locksteward.Sweep, err error) {
	t.Helper()
	stopped, open := g.arm(when)
	var wg sync.WaitGroup
	wg.Go(func() { got, err = s.Sweep(t.Context()) })
	defer wg.Wait()
	defer open()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("the sweep does not come so far")
	}
	do()
	open()
	wg.Wait()
	return got, err
}

func passOf(got locksteward.Sweep, node string) locksteward.MasterPass {
	for _, m := range got.Masters {
		if m.Node == node {
			return m
		}
	}
	return locksteward.MasterPass{}
}

// fault: 36
func TestClusterPausedMasterResolvesNothing(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t, testredis.WithConfig("cluster-node-timeout 60000"))
	c := cluster.Client(t)
	fill(t, c, 20_000)
	keys := map[*testredis.Server][]string{}
	for i := range 30 {
		key := fmt.Sprintf("lock:%d", i)
		must(t, c.Set(t.Context(), key, fmt.Sprint("tok", i), 0).Err())
		n := cluster.NodeOf(key)
		keys[n] = append(keys[n], key)
	}
	r := slow(cluster.URL())
	r.scan.Pace = pace.Config{Idle: 0.1, Busy: 0.1} // for three masters together
	s := r.build(t)
	first := sweep(t, s)
	if len(first.Locks) != 30 || len(first.Masters) != 3 || len(keys) != 3 {
		t.Fatalf("%d locks on %d masters", len(first.Locks), len(first.Masters))
	}
	for _, l := range first.Locks {
		if l.Node != cluster.NodeOf(l.Key).Addr() {
			t.Errorf("%s was read from %s", l.Key, l.Node)
		}
	}
	for i := range 30 {
		must(t, c.Del(t.Context(), fmt.Sprintf("lock:%d", i)).Err())
	}
	stopped := cluster.Nodes[1]
	got, err := during(t, s, r.gate, stopped.Pause)
	defer stopped.Resume()
	if err == nil || got.Complete() {
		t.Errorf("complete with a paused master: %+v", got.Masters)
	}
	for _, n := range cluster.Nodes {
		p := passOf(got, n.Addr())
		if p.Complete != (n != stopped) || (p.Reason == "") != p.Complete {
			t.Errorf("pass over %s: %+v", n.Addr(), p)
		}
		for _, key := range keys[n] {
			_, known := s.Table().Get(0, key)
			if over := ending(got, key) != ""; over != (n != stopped) || known == over {
				t.Errorf("%s on %s: ended %v, known %v", key, n.Addr(), over, known)
			}
		}
	}
	if state := s.State(); !state.Up || !strings.Contains(state.Reason, "1 of 3 masters") {
		t.Errorf("state %+v", state)
	}
	stopped.Resume()
	testredis.Eventually(t, 20*time.Second, func() bool {
		got, err = s.Sweep(t.Context())
		return err == nil && got.Complete()
	}, "no complete sweep after the master came back")
	if len(got.Endings) != len(keys[stopped]) || s.Table().Len() != 0 {
		t.Errorf("%d endings, want %d", len(got.Endings), len(keys[stopped]))
	}
}

// fault: 37, 38
func TestReshardMakesThePassIncomplete(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	c := cluster.Client(t)
	fill(t, c, 20_000)
	all := []string{"lock:{moved}"}
	for i := range 400 { // of the slot: some are read on both masters
		all = append(all, fmt.Sprintf("lock:{moved}:%d", i))
	}
	for i := range 20 {
		all = append(all, fmt.Sprintf("lock:stays:%d", i))
	}
	slices.Sort(all)
	for _, key := range all {
		must(t, c.Set(t.Context(), key, "tok", 0).Err())
	}
	r := slow(cluster.URL())
	r.scan.Pace = pace.Config{Idle: 0.1, Busy: 0.1} // for three masters together
	s := r.build(t)
	sweep(t, s)
	// The slot of a lock, and one whose keys nobody reads.
	for _, key := range []string{"lock:{moved}", "{plain}"} {
		must(t, c.Set(t.Context(), key, "tok", 0).Err())
		from := cluster.NodeOf(key)
		to := cluster.Nodes[0]
		if from == to {
			to = cluster.Nodes[1]
		}
		// Far enough that locks were read on their old master, and not on the new one.
		third := func(int) bool {
			p, ok := s.Progress()
			return ok && p.OfKeys > 0 && 3*p.Keys >= p.OfKeys
		}
		got, err := duringFrom(t, s, r.gate, third, func() { moveSlot(t, key, from, to, cluster.Nodes) })
		if err == nil || got.Complete() {
			t.Errorf("complete while the slot of %s moved: %+v", key, got.Masters)
		}
		if len(got.Endings) != 0 || len(got.Losses) != 0 {
			t.Errorf("endings %+v, losses %+v", got.Endings, got.Losses)
		}
		// What was read on one master before the move may have been read on the other after it.
		if once := slices.Compact(names(got.Locks)); len(once) != len(got.Locks) {
			t.Errorf("locks that come twice while a slot moves: %q", names(got.Locks))
		}
		if key == "{plain}" {
			continue
		}
		after := sweep(t, s)
		if l := find(t, after.Locks, key); l.Node != to.Addr() || l.History.Looks < 2 || len(after.Endings) != 0 {
			t.Errorf("after the move: %s, %+v, endings %+v", l.Node, l.History, after.Endings)
		}
		for where, locks := range map[string][]locksteward.Lock{"the sweep": after.Locks, "the table": s.Table().Locks()} {
			if have := names(locks); !slices.Equal(have, all) {
				t.Errorf("after the move %s has %d, want each of %d once: %q", where, len(have), len(all), have)
			}
		}
		if page := s.Table().Page(scanner.Query{Limit: 1000}); len(page.Locks) != len(all) {
			t.Errorf("after the move a page has %d of %d", len(page.Locks), len(all))
		}
	}
}

// moveSlot moves key's slot with all its keys.
func moveSlot(t *testing.T, key string, from, to *testredis.Server, all []*testredis.Server) {
	t.Helper()
	ctx := t.Context()
	a, b := from.Client(t), to.Client(t)
	slot, err := a.ClusterKeySlot(ctx, key).Result()
	must(t, err)
	idA, err := a.Do(ctx, "cluster", "myid").Text()
	must(t, err)
	idB, err := b.Do(ctx, "cluster", "myid").Text()
	must(t, err)
	must(t, b.Do(ctx, "cluster", "setslot", slot, "importing", idA).Err())
	must(t, a.Do(ctx, "cluster", "setslot", slot, "migrating", idB).Err())
	host, port, _ := strings.Cut(to.Addr(), ":")
	keys, err := a.ClusterGetKeysInSlot(ctx, int(slot), 1000).Result()
	must(t, err)
	migrate := []any{"migrate", host, port, "", 0, 5000, "keys"}
	for _, k := range keys {
		migrate = append(migrate, k)
	}
	must(t, a.Do(ctx, migrate...).Err())
	for _, n := range all {
		must(t, n.Client(t).Do(ctx, "cluster", "setslot", slot, "node", idB).Err())
	}
}

// fault: 38
func TestFailoverDuringTheSweep(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	c := sentinel.Client(t)
	fill(t, c, 20_000)
	must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
	must(t, c.Wait(t.Context(), 1, 5*time.Second).Err())
	r := slow(sentinel.URL())
	s := r.build(t)
	sweep(t, s)
	master := sentinel.Master()
	got, err := during(t, s, r.gate, func() { sentinel.Failover(t) })
	if err == nil || got.Complete() || len(got.Endings) != 0 {
		t.Errorf("a failover in the middle: %v, %+v, endings %+v", err, got.Masters, got.Endings)
	}
	testredis.Eventually(t, 20*time.Second, func() bool {
		got, err = s.Sweep(t.Context())
		return err == nil && got.Complete()
	}, "no complete sweep after the failover")
	l := find(t, got.Locks, "lock:a")
	if l.Node == master.Addr() || l.History.Looks < 2 || len(got.Endings) != 0 {
		t.Errorf("after the failover: %s, %+v, endings %+v", l.Node, l.History, got.Endings)
	}
}

// fault: 38
func TestRestartDuringTheSweep(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	fill(t, c, 20_000)
	must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
	r := slow(srv.URL())
	s := r.build(t)
	sweep(t, s)
	got, err := during(t, s, r.gate, srv.Restart)
	if err == nil || got.Complete() || len(got.Endings) != 0 {
		t.Errorf("a restart in the middle: %v, %+v, endings %+v", err, got.Masters, got.Endings)
	}
	// The server came back empty: the lock is gone, and nobody released it.
	testredis.Eventually(t, 10*time.Second, func() bool {
		got, err = s.Sweep(t.Context())
		return err == nil && got.Complete()
	}, "no complete sweep after the restart")
	if how := ending(got, "lock:a"); how != locksteward.EndedDeleted {
		t.Errorf("ended %q", how)
	}
}

// fault: 34
func TestReplicaIsNoMaster(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t)
	replica := testredis.StartReplica(t, master)
	s := fast(replica.URL()).build(t)
	got, err := s.Sweep(t.Context())
	if err == nil || got.Complete() || !strings.Contains(s.State().Reason, "replica") {
		t.Errorf("swept a replica: %v, %+v", err, s.State())
	}
}

// A sweep is cut when no server answers, and not when it is long.
func TestOnlyASweepWithoutProgressIsCut(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	fill(t, c, 5000)
	r := slow(srv.URL())
	r.scan.Pace, r.scan.Timeout = pace.Config{Idle: 0.002, Busy: 0.002}, time.Second
	s := r.build(t)
	got, err := s.Sweep(t.Context())
	if err != nil || !got.Complete() || got.Duration < r.scan.Timeout {
		t.Errorf("a sweep of %s: %v, %+v", got.Duration, err, got.Masters)
	}
	var throttled time.Duration
	for _, waited := range s.Stats().Throttled {
		throttled += waited
	}
	if throttled < 500*time.Millisecond {
		t.Errorf("throttled for %s", throttled)
	}

	r.connect.ReadTimeout = 3 * time.Second
	s = r.build(t)
	scanned := scans(t, c)
	frozen := make(chan struct{})
	go func() {
		defer close(frozen)
		testredis.Eventually(t, 20*time.Second, func() bool { return scans(t, c) > scanned }, "the sweep does not begin")
		srv.Pause()
	}()
	got, err = s.Sweep(t.Context())
	<-frozen
	srv.Resume()
	if err == nil || got.Complete() || len(got.Masters) != 1 || !strings.Contains(got.Masters[0].Reason, "timeout") {
		t.Errorf("%v, %+v", err, got.Masters)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sweep(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestEmptyPagesAreNoEnd sweeps a keyspace of which almost all keys have
// expired and are still there: SCAN skips them, whole pages long.
// fault: 65
func TestEmptyPagesAreNoEnd(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("enable-debug-command yes"))
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Do(ctx, "debug", "set-active-expire", "0").Err())
	for from := 0; from < 20000; from += 1000 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 1000 {
				p.Do(ctx, "set", fmt.Sprintf("dead:%d", from+i), "x", "px", 1)
			}
			return nil
		})
		must(t, err)
	}
	for i := range 5 {
		must(t, c.Set(ctx, fmt.Sprintf("lock:%d", i), "tok", 0).Err())
	}
	passed(t, c, 5*time.Millisecond)
	s := fast(srv.URL()).build(t)
	if got := sweep(t, s); len(got.Locks) != 5 || got.Keys() > 50 {
		t.Errorf("%d locks among %d keys", len(got.Locks), got.Keys())
	}
}

// fault: 40
func TestBusyServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("lua-time-limit 10"))
	c := srv.Client(t)
	fill(t, c, 20_000)
	must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
	r := slow(srv.URL())
	s := r.build(t)
	var wg sync.WaitGroup
	got, err := during(t, s, r.gate, func() {
		wg.Go(func() {
			opts := srv.Options()
			opts.ReadTimeout = 30 * time.Second
			own := redis.NewClient(opts)
			defer own.Close()
			script := "local e = redis.call('time')[1] + 2 while tonumber(redis.call('time')[1]) < e do end return 1"
			if err := own.Eval(t.Context(), script, nil).Err(); err != nil {
				t.Errorf("script: %v", err)
			}
		})
		testredis.Eventually(t, soon, func() bool { return redis.HasErrorPrefix(c.Ping(t.Context()).Err(), "BUSY") }, "the script does not run")
	})
	wg.Wait()
	if err != nil || !got.Complete() || len(got.Locks) != 1 {
		t.Errorf("a script ran for a while: %v, %+v", err, got.Masters)
	}
	if busy := s.Stats().Throttled[source.ReasonBusy]; busy == 0 {
		t.Error("no time was counted as busy")
	}
	if stats := c.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "script|kill") {
		t.Error("somebody has sent SCRIPT KILL")
	}
}
