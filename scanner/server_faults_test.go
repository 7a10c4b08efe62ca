package scanner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock/record"
	"github.com/locksteward/locksteward/rules"
	"github.com/locksteward/locksteward/source"
)

// The server's clock goes back by a day: a lease lasts longer by that, and a TTL
// above what the class allows is reported. Ages go on, and what ends is seen at once,
// not a day later.
// fault: 11
func TestClockThatGoesBack(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t)
	c := srv.Client(t)
	ctx := t.Context()
	r := fast(srv.URL())
	r.classes = []class.Class{{Name: "work", Match: []string{"lock:*"}, MaxTTL: time.Hour}}
	set, err := class.NewSet(r.classes)
	must(t, err)
	e, err := rules.New(nil, set, nil)
	must(t, err)
	w := tracked(t, r)
	for _, key := range []string{"lock:a", "lock:b", "lock:c"} {
		must(t, c.Set(ctx, key, "tok", time.Minute).Err())
	}
	judged(t, w.s, e)
	clock.Step(40 * time.Second)
	judged(t, w.s, e)
	if f := finding(e, "ttl/too-long", "lock:a"); f != nil {
		t.Fatalf("before: %s", catalogue.Text("en", f.Summary))
	}
	clock.Step(-24 * time.Hour)
	must(t, c.Del(ctx, "lock:b").Err())
	w.awaitEnd("lock:b", 1) // by the watch
	must(t, c.Set(ctx, "lock:c", "another", time.Minute).Err())
	got := judged(t, w.s, e)
	l := find(t, got.Locks, "lock:a")
	if l.TTL < 23*time.Hour {
		t.Errorf("TTL %s", l.TTL)
	}
	if age, basis, _ := l.Age(); age < 40*time.Second || age > time.Minute || basis != locksteward.AgeObserved {
		t.Errorf("age %s by %s, want that from before", age, basis)
	}
	if f := finding(e, "ttl/too-long", "lock:a"); f == nil {
		t.Error("nothing is said of a TTL of a day, where an hour is allowed")
	}
	if l := find(t, got.Locks, "lock:c"); l.History.Looks > 2 || l.TTL > time.Minute {
		t.Errorf("the next hold: %+v, TTL %s", l.History, l.TTL)
	}
	must(t, c.Del(ctx, "lock:a").Err())
	if got := judged(t, w.s, e); len(got.Locks) != 1 {
		t.Errorf("locks %q", names(got.Locks))
	}
	w.audit()
}

// PTTL says 0 of a key that lives for less than a millisecond more, -1 of one
// without TTL, -2 of one that is gone: three different things.
// fault: 35
func TestEachAnswerOfPTTL(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t)
	c := srv.Client(t)
	ctx := t.Context()
	at := time.Now().Truncate(time.Second)
	clock.Freeze(at)
	must(t, c.Set(ctx, "lock:last", "tok", 40*time.Millisecond).Err())
	must(t, c.Set(ctx, "lock:bare", "tok", 0).Err())
	must(t, c.Set(ctx, "lock:gone", "tok", 39*time.Millisecond).Err())
	s := fast(srv.URL()).build(t)
	if got := sweep(t, s); len(got.Locks) != 3 {
		t.Fatalf("locks %q", names(got.Locks))
	}
	clock.Freeze(at.Add(40 * time.Millisecond))
	for key, want := range map[string]time.Duration{"lock:last": 0, "lock:bare": -1, "lock:gone": -2} {
		if ttl := c.PTTL(ctx, key).Val(); ttl != want {
			t.Fatalf("the server says %d of %s, want %d", ttl, key, want)
		}
	}
	got := sweep(t, s)
	if l := find(t, got.Locks, "lock:last"); l.TTL == locksteward.NoExpiry || l.TTL < 0 || l.TTL > time.Millisecond {
		t.Errorf("the last millisecond: TTL %s", l.TTL)
	}
	if l := find(t, got.Locks, "lock:bare"); l.TTL != locksteward.NoExpiry {
		t.Errorf("without TTL: %s", l.TTL)
	}
	if how := ending(got, "lock:gone"); how != locksteward.EndedExpired || len(got.Locks) != 2 {
		t.Errorf("what is gone ended %q, locks %q", how, names(got.Locks))
	}
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	e.Evaluate(got)
	if f := finding(e, rules.TTLNone, "lock:last"); f != nil {
		t.Errorf("the last millisecond is taken for no TTL: %s", catalogue.Text("en", f.Summary))
	}
	if f := finding(e, rules.TTLNone, "lock:bare"); f == nil {
		t.Error("nothing is said of the lock without TTL")
	}
}

// A Cluster in which some slots have no master refuses every key on all nodes:
// the sweep says so and resolves nothing, and is complete when that is over.
// fault: 36
func TestClusterDownResolvesNothing(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t)
	c := cluster.Client(t)
	ctx := t.Context()
	for i := range 30 {
		must(t, c.Set(ctx, fmt.Sprintf("lock:%d", i), fmt.Sprint("tok", i), 0).Err())
	}
	s := fast(cluster.URL()).build(t)
	if got := sweep(t, s); len(got.Locks) != 30 {
		t.Fatalf("%d locks", len(got.Locks))
	}
	// A slot without locks is given up by its master.
	owner := cluster.NodeOf("nothing").Client(t)
	slot := c.ClusterKeySlot(ctx, "nothing").Val()
	must(t, owner.ClusterDelSlots(ctx, int(slot)).Err())
	down := func(state string) {
		t.Helper()
		testredis.Eventually(t, 20*time.Second, func() bool {
			return strings.Contains(owner.ClusterInfo(ctx).Val(), "cluster_state:"+state)
		}, "the master says "+state)
	}
	down("fail")
	got, err := s.Sweep(ctx)
	if err == nil || got.Complete() {
		t.Errorf("complete while slots are not served: %+v", got.Masters)
	}
	if len(got.Endings) != 0 || s.Table().Len() != 30 {
		t.Errorf("%d endings, %d locks are known", len(got.Endings), s.Table().Len())
	}
	said := fmt.Sprint(err, got.Masters)
	if !strings.Contains(said, "CLUSTERDOWN") && !strings.Contains(said, "no master serves these slots") {
		t.Errorf("the reason is not reported: %s", said)
	}
	must(t, owner.ClusterAddSlots(ctx, int(slot)).Err())
	down("ok")
	testredis.Eventually(t, 20*time.Second, func() bool {
		got, err := s.Sweep(ctx)
		return err == nil && got.Complete() && len(got.Locks) == 30 && len(got.Endings) == 0
	}, "no complete sweep afterwards")
}

// A real server loads its data for some seconds: it is waited for, the target is said
// to be away, nothing is resolved, what fires goes on firing, and then all is as before.
// fault: 39
func TestLoadingResolvesNothing(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "loading-process-events-interval-bytes, set while it runs,")
	srv := testredis.Start(t, testredis.WithConfig("enable-debug-command yes", "enable-protected-configs yes"))
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:bare", "tok-b", 0).Err())
	// Values so long that it looks at its clients after every few keys.
	must(t, c.Do(ctx, "DEBUG", "POPULATE", "300", "filler", "300").Err())
	r := fast(srv.URL())
	r.scan.Schedule = "@every 1s"
	s := r.build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	fires := func() bool {
		f := finding(e, rules.TTLNone, "lock:bare")
		return f != nil && f.Status == locksteward.StatusFiring
	}
	run := start(t, s)
	run.await(t, "before", func(got locksteward.Sweep) bool {
		e.Evaluate(got)
		return got.Complete() && fires()
	})
	must(t, c.ConfigSet(ctx, "key-load-delay", "20000").Err())
	must(t, c.ConfigSet(ctx, "loading-process-events-interval-bytes", "1024").Err())
	o := srv.Options()
	o.ReadTimeout, o.MaxRetries = 60*time.Second, -1
	patient := redis.NewClient(o)
	defer patient.Close()
	reloaded := make(chan error, 1)
	go func() { reloaded <- patient.Do(context.Background(), "DEBUG", "RELOAD").Err() }()
	loading := 0
	judge := func(got locksteward.Sweep) {
		t.Helper()
		if len(got.Endings) != 0 || len(got.Losses) != 0 {
			t.Errorf("endings %+v, losses %+v", got.Endings, got.Losses)
		}
		if reported := notified(e.Evaluate(got)); len(reported) != 0 || !fires() {
			t.Errorf("reported %q; the lock without TTL fires: %v", reported, fires())
		}
		// Its state may be of a later sweep, but not of one that was read.
		if state := s.State(); len(got.Masters) == 0 && !state.Up && strings.Contains(state.Reason, "loading its data") {
			loading++
		}
	}
	run.await(t, "while it loads, that says so", func(got locksteward.Sweep) bool {
		judge(got)
		return loading > 1
	})
	if len(reloaded) != 0 {
		t.Error("it was said to load when it did so no more")
	}
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	back := run.await(t, "afterwards", func(got locksteward.Sweep) bool {
		judge(got)
		return got.Complete()
	})
	if l := find(t, back.Locks, "lock:a"); l.History.Looks < 2 || !s.State().Up {
		t.Errorf("afterwards: %+v, %+v", l.History, s.State())
	}
}

// A server without memory to give is swept and watched as ever: all that the
// agent sends is allowed there. Redis 8.6 lets nobody subscribe: a watch that stands
// goes on, another says what it lacks, and is set up when there is room.
// fault: 42
func TestFullServerIsSwept(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:b", "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:c", "tok", time.Hour).Err())
	stands := tracked(t, fast(srv.URL()))
	must(t, c.ConfigSet(ctx, "maxmemory", "1").Err())
	if err := c.Set(ctx, "x", "y", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("the server takes a write: %v", err)
	}
	later := watch(t, fast(srv.URL()))
	if subscribes(t, c) {
		later.awaitTracking()
	} else {
		later.awaitState("why there is none", func(s source.WatchState) bool {
			return s.Mode == source.WatchSweep && s.Reason == "the server is out of memory; look at maxmemory"
		})
	}
	for _, w := range []*reported{stands, later} {
		if got := sweep(t, w.s); len(got.Locks) != 3 || len(w.s.Stats().Degraded) != 0 {
			t.Errorf("locks %q, degraded %q", names(got.Locks), w.s.Stats().Degraded)
		}
	}
	must(t, c.Del(ctx, "lock:a").Err())
	stands.awaitEnd("lock:a", 1)
	stands.audit()
	must(t, c.ConfigSet(ctx, "maxmemory", "0").Err())
	later.awaitTracking()
	must(t, c.Del(ctx, "lock:b").Err())
	later.awaitEnd("lock:b", 1)
}

// subscribes says whether the server lets clients subscribe now.
func subscribes(t *testing.T, c *redis.Client) bool {
	t.Helper()
	sub := c.Subscribe(t.Context(), "any")
	defer sub.Close()
	_, err := sub.Receive(t.Context())
	if err != nil && !redis.HasErrorPrefix(err, "OOM") {
		t.Fatal(err)
	}
	return err == nil
}

// A master dies with a lock that its replica has never seen: the failover is
// reported with that lock, which counts as deleted, not as released by its holder; one
// that was replicated goes on, and one whose release was not is informed to be back.
// fault: 29, 31
func TestFailoverLosesALock(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	c := sentinel.Client(t)
	ctx := t.Context()
	s := fast(sentinel.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	must(t, c.Set(ctx, "lock:old", "tok", time.Hour).Err())
	must(t, c.Set(ctx, "lock:released", "0f8fad5b-d9cb-469f-a165-70867728950e", time.Hour).Err())
	must(t, c.Wait(ctx, 1, 5*time.Second).Err())
	old := sentinel.Master()
	var heir *testredis.Server
	for _, srv := range sentinel.Servers {
		if srv != old {
			heir = srv
		}
	}
	// The replica asks with a password that the master does not know.
	must(t, heir.Client(t).ConfigSet(ctx, "masterauth", "wrong").Err())
	master := old.Client(t)
	must(t, master.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err())
	testredis.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(master.Info(ctx, "replication").Val(), "connected_slaves:0")
	}, "the replica still hears")
	must(t, master.Set(ctx, "lock:young", "tok", time.Hour).Err())
	find(t, judged(t, s, e).Locks, "lock:young")
	must(t, master.Del(ctx, "lock:released").Err())
	if how := ending(judged(t, s, e), "lock:released"); how != locksteward.EndedReleased {
		t.Errorf("the lock that was released ended %q", how)
	}
	old.Kill()
	sentinel.AwaitMasterOtherThan(t, old)
	var got locksteward.Sweep
	testredis.Eventually(t, 20*time.Second, func() bool {
		var err error
		got, err = s.Sweep(ctx)
		e.Evaluate(got)
		return err == nil && got.Complete()
	}, "no complete sweep of the new master")
	if how := ending(got, "lock:young"); how != locksteward.EndedDeleted {
		t.Errorf("the lock that was lost ended %q", how)
	}
	if l := find(t, got.Locks, "lock:old"); l.History.Looks < 2 {
		t.Errorf("the lock that was replicated: %+v", l.History)
	}
	over := happened(got, locksteward.ServerFailedOver)
	if len(over) != 1 || over[0].Locks != 1 || !slices.Equal(over[0].Keys, []string{"lock:young"}) || !slices.Equal(over[0].BackKeys, []string{"lock:released"}) {
		t.Errorf("the failover may have taken %+v", over)
	}
	wantLostInFailover(t, e, "1 lock", "lock:young")
	if said := evidenceOf(finding(e, "server/failover", "")); !strings.Contains(said, "belong to nobody: lock:released\n") {
		t.Errorf("of the lock that was released: %s", said)
	}
	// A second sweep has nothing to add.
	if over = happened(judged(t, s, e), locksteward.ServerFailedOver); len(over) != 1 || over[0].Locks != 1 {
		t.Errorf("reported again: %+v", over)
	}
	wantLostInFailover(t, e, "1 lock", "lock:young")
}

// A server comes back without its data: no lock that went with it counts as
// released by its holder, whether the watch or a sweep finds out.
// fault: 27
func TestRestartReleasesNothing(t *testing.T) {
	t.Parallel()
	for _, watching := range []bool{true, false} {
		t.Run(fmt.Sprint("watch ", watching), func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			e, err := rules.New(nil, nil, nil)
			must(t, err)
			r := fast(srv.URL())
			w := &reported{t: t, s: r.build(t), locks: map[string]locksteward.Lock{}}
			must(t, c.Set(t.Context(), "lock:theirs", "tok", time.Hour).Err())
			take(t, c, "lock:ours", record.Meta{ID: "id", Instance: "i"}, time.Hour)
			if watching {
				w.run(t)
				w.awaitTracking()
			}
			if got := judged(t, w.s, e); len(got.Locks) != 2 {
				t.Fatalf("locks %q", names(got.Locks))
			}
			srv.Restart()
			if watching {
				w.awaitEnd("lock:theirs", 1)
				w.awaitEnd("lock:ours", 1)
			}
			got := judged(t, w.s, e)
			for _, key := range []string{"lock:theirs", "lock:ours"} {
				how := w.ended(key)
				if how = append(how, ending(got, key)); how[0] != locksteward.EndedDeleted {
					t.Errorf("%s ended %q", key, how)
				}
			}
			if reported := firing(e); !strings.Contains(reported, "server/restarted") {
				t.Errorf("firing: %q", reported)
			}
		})
	}
}

// The server's clock jumps forward, and all leases end at once: the jump is reported
// as such, each loss names it as its cause, and nobody is called dead because the
// heartbeats went too.
// fault: 10
func TestClockThatJumpsForward(t *testing.T) {
	t.Parallel()
	srv, clock := testredis.StartClocked(t)
	c := srv.Client(t)
	s := fast(srv.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	keys := []string{"lock:a", "lock:b", "lock:c"}
	for i, key := range keys {
		id := fmt.Sprint("i", i)
		heartbeat(t, c, id)
		take(t, c, key, record.Meta{ID: "id-" + id, Instance: id}, time.Minute)
	}
	judged(t, s, e)
	if got := judged(t, s, e); len(happened(got, locksteward.ServerClockStepped)) != 0 {
		t.Fatalf("before: %+v", got.Events)
	}
	clock.Step(2 * time.Minute)
	for i := range keys {
		heartbeat(t, c, fmt.Sprint("i", i)) // as they come again within 5 s
	}
	got := judged(t, s, e)
	jumps := happened(got, locksteward.ServerClockStepped)
	if len(jumps) != 1 || jumps[0].Step < 2*time.Minute-time.Second || jumps[0].Step > 2*time.Minute+time.Second {
		t.Fatalf("events %+v", got.Events)
	}
	for _, key := range keys {
		if how := ending(got, key); how != locksteward.EndedExpired {
			t.Errorf("%s ended %q", key, how)
		}
		f := finding(e, "hold/lost", key)
		if f == nil {
			t.Errorf("%s: the loss is not reported", key)
			continue
		}
		if said := evidenceOf(f); !strings.Contains(said, "jumped forward by 2m") || !strings.Contains(catalogue.Text("en", f.Cause), "clock jumped forward") {
			t.Errorf("%s: cause %q, evidence %q", key, catalogue.Text("en", f.Cause), said)
		}
	}
	for _, f := range e.Findings() {
		if f.Rule == rules.HolderDead {
			t.Errorf("called dead: %s", catalogue.Text("en", f.Summary))
		}
	}
	clock.Step(-time.Hour)
	if jumps = happened(judged(t, s, e), locksteward.ServerClockStepped); len(jumps) != 2 || jumps[1].Step > -59*time.Minute {
		t.Errorf("after a jump back: %+v", jumps)
	}
}

// A server that cannot save, and therefore takes no writes, is notified of once, however
// often it is swept, and once again when it is mended.
// fault: 44
func TestServerThatCannotSaveIsReportedOnce(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "the count of each error in INFO")
	srv := testredis.Start(t, testredis.WithConfig("enable-protected-configs yes"))
	c := srv.Client(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "lock:a", "tok", time.Hour).Err())
	// With a log of its writes it forgets nothing: what is reported is the saving.
	must(t, c.ConfigSet(ctx, "appendonly", "yes").Err())
	testredis.Eventually(t, 20*time.Second, func() bool {
		return stat(t, c, "persistence", "aof_rewrite_in_progress:")+stat(t, c, "persistence", "aof_rewrite_scheduled:") == 0
	}, "the log is begun")
	dir := c.ConfigGet(ctx, "dir").Val()["dir"]
	s := fast(srv.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	reported := func(sweeps int) []string {
		t.Helper()
		var out []string
		for range sweeps {
			for _, tr := range e.Evaluate(sweep(t, s)) {
				if rule := tr.Finding.Rule; rule == "server/not-durable" || rule == "server/refuses-writes" {
					out = append(out, fmt.Sprint(tr.Finding.Status, " ", rule))
				}
			}
		}
		slices.Sort(out)
		return out
	}
	if got := reported(1); len(got) != 0 {
		t.Fatalf("before: %q", got)
	}
	must(t, c.ConfigSet(ctx, "save", "3600 1").Err())
	must(t, c.ConfigSet(ctx, "dir", "/proc").Err()) // nobody writes there
	_ = c.BgSave(ctx).Err()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return redis.HasErrorPrefix(c.Set(ctx, "other", "x", 0).Err(), "MISCONF")
	}, "no MISCONF")
	if got := reported(3); !slices.Equal(got, []string{"firing server/not-durable", "firing server/refuses-writes"}) {
		t.Errorf("reported %q by three sweeps, want each once", got)
	}
	must(t, c.ConfigSet(ctx, "dir", dir).Err())
	testredis.Eventually(t, 20*time.Second, func() bool {
		_ = c.BgSave(ctx).Err() // refused while another one runs
		return c.Set(ctx, "other", "x", 0).Err() == nil
	}, "it takes writes again")
	if got := reported(3); !slices.Equal(got, []string{"resolved server/not-durable", "resolved server/refuses-writes"}) {
		t.Errorf("afterwards reported %q by three sweeps, want each end once", got)
	}
}
