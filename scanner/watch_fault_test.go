package scanner_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source"
	redissource "github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// clientID returns the id of our connection of that name.
func clientID(t testing.TB, c *redis.Client, name string) (id, line string) {
	t.Helper()
	list, err := c.ClientList(t.Context()).Result()
	must(t, err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name="+name+" ") {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			return id, line
		}
	}
	return "", ""
}

// TestWatchRecoversFromADeadConnection kills each of the two connections. That
// of the subscriber is noticed by its own end, that of the tracker by the next
// check; either way the time since the last good check is blind.
// fault: 60
func TestWatchRecoversFromADeadConnection(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"subscriber", "tracker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			w := watch(t, fast(srv.URL()))
			w.awaitTracking()
			w.audit()
			for round := range 3 {
				since := w.s.WatchState().Nodes[0].Since
				blind := w.s.WatchState().Blind
				id, _ := clientID(t, c, "locksteward-"+name)
				must(t, c.ClientKillByFilter(t.Context(), "ID", id).Err())
				// In the blind interval, or not: either way it is known in the end.
				key := fmt.Sprintf("lock:%s:%d", name, round)
				must(t, c.Set(t.Context(), key, "tok", 0).Err())
				w.awaitState("set up again", func(s source.WatchState) bool {
					return whole(s) && s.Nodes[0].Since.After(since)
				})
				if s := w.s.WatchState(); s.Blind <= blind || s.Nodes[0].Repaired {
					t.Errorf("after the fault: blind %s, repaired %v", s.Blind, s.Nodes[0].Repaired)
				}
				got := sweep(t, w.s)
				find(t, got.Locks, key)
				if s := w.s.WatchState(); !s.Nodes[0].Repaired {
					t.Error("a complete sweep did not repair the watch")
				}
				must(t, c.Set(t.Context(), key+":after", "tok", 0).Err())
				w.awaitLock(key + ":after")
			}
			w.audit()
		})
	}
}

// TestBlindMomentAmongManyLocks: what happened while nobody reported is found by the watch,
// which reads the few locks again, and of many by a sweep that does not wait for its date.
func TestBlindMomentAmongManyLocks(t *testing.T) {
	t.Parallel()
	for _, locks := range []int{100, 10_001} {
		t.Run(strconv.Itoa(locks), func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t)
			c := srv.Client(t)
			ctx := t.Context()
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range locks {
					p.Set(ctx, fmt.Sprintf("lock:%d", i), fmt.Sprintf("%032x", i), time.Hour)
				}
				return nil
			})
			must(t, err)
			r := fast(srv.URL())
			r.scan.Schedule = "@every 1h"
			w := tracked(t, r)
			run := start(t, w.s)
			run.await(t, "at once", complete)
			w.awaitState("repaired", func(s source.WatchState) bool { return whole(s) && s.Nodes[0].Repaired })
			reads := w.s.WatchState().Reads

			id, _ := clientID(t, c, "locksteward-tracker")
			must(t, c.ClientKillByFilter(ctx, "ID", id).Err())
			must(t, c.Del(ctx, "lock:7").Err())
			if locks < 10_000 {
				w.awaitEnd("lock:7", 1)
				if n := len(run.sweeps); n != 0 {
					t.Errorf("%d sweeps before their date", n)
				}
				return
			}
			got := run.await(t, "before its date", complete)
			if len(got.Endings) != 1 || got.Endings[0].Lock.Key != "lock:7" {
				t.Errorf("endings %v, want that of lock:7", got.Endings)
			}
			w.awaitState("repaired", func(s source.WatchState) bool { return whole(s) && s.Nodes[0].Repaired })
			if n := w.s.WatchState().Reads - reads; n > 100 {
				t.Errorf("the watch read %d locks beside the sweep", n)
			}
			if n := len(run.sweeps); n != 0 {
				t.Errorf("%d more sweeps", n)
			}
		})
	}
}

// TestFrozenAgentIsCutOff: while the agent does not read, what the server keeps
// for it stays within 32 MiB, and then it is cut off.
// fault: 8, 60
func TestFrozenAgentIsCutOff(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	ctx := t.Context()
	proxy := testredis.NewProxy(t, srv.Addr())
	w := tracked(t, fast("redis://"+proxy.Addr()+"/0"))
	sweep(t, w.s)
	proxy.Freeze(true)

	const most = 32 << 20
	long := strings.Repeat("x", 4096)
	peak, cut := int64(0), false
	for n := 0; n < 400 && !cut; n++ {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range 100 {
				p.Set(ctx, fmt.Sprintf("lock:%s:%d:%d", long, n, i), "t", time.Second)
			}
			return nil
		})
		must(t, err)
		id, line := clientID(t, c, "locksteward-subscriber")
		cut = id == ""
		peak = max(peak, field(line, "omem"))
		if _, line := clientID(t, c, "locksteward-tracker"); field(line, "omem") > 1<<20 {
			t.Fatalf("the tracker piles up: %s", line)
		}
	}
	if !cut {
		t.Fatalf("the server still feeds the frozen agent, %d bytes wait", peak)
	}
	// The limit is checked when something is added: one batch may be on top.
	if peak > most+(2<<20) {
		t.Errorf("the frozen agent cost %d bytes", peak)
	}
	t.Logf("cut off after %.1f MiB", float64(peak)/(1<<20))
	proxy.Freeze(false)
	w.awaitState("set up again, and blind meanwhile", func(s source.WatchState) bool { return whole(s) && s.Blind > 0 })
	must(t, c.Set(ctx, "lock:after", "tok", 0).Err())
	w.awaitLock("lock:after")
	w.audit()
}

func field(line, name string) int64 {
	_, rest, ok := strings.Cut(line, " "+name+"=")
	if !ok {
		return 0
	}
	var n int64
	_, _ = fmt.Sscanf(rest, "%d", &n)
	return n
}

// fault: 27
func TestWatchOutlivesARestart(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	w.taken(c, "lock:gone")
	srv.Restart()
	w.awaitState("set up again", func(s source.WatchState) bool { return whole(s) && s.Blind > 0 })
	w.awaitEnd("lock:gone", 1) // by the resync
	c = srv.Client(t)
	w.taken(c, "lock:new")
	w.audit()
}

func TestWatchFollowsAClusterFailover(t *testing.T) {
	t.Parallel()
	sinceTracking(t)
	cluster := testredis.StartCluster(t)
	c := cluster.Client(t)
	const key = "lock:{moves}:1"
	master := cluster.NodeOf(key)
	replica := cluster.AddReplica(t, master)
	w := watch(t, fast(cluster.URL()))
	w.awaitState("tracking on all masters", func(s source.WatchState) bool { return whole(s) && len(s.Nodes) == 3 })
	w.taken(c, key)
	for i := range 30 {
		must(t, c.Set(t.Context(), fmt.Sprintf("lock:spread:%d", i), "tok", 0).Err())
	}
	for i := range 30 {
		w.awaitLock(fmt.Sprintf("lock:spread:%d", i))
	}
	w.audit()

	master.Kill()
	// The Cluster may need a second election, and the watch asks every 5 s.
	testredis.Eventually(t, 60*time.Second, func() bool {
		s := w.s.WatchState()
		for _, n := range s.Nodes {
			if n.Addr == master.Addr() {
				return false
			}
		}
		return whole(s) && len(s.Nodes) == 3 && s.Blind > 0
	}, "another master is watched")
	promoted := replica.Client(t)
	testredis.Eventually(t, soon, func() bool { return promoted.Set(t.Context(), "lock:{moves}:2", "tok", 0).Err() == nil }, "no write after the failover")
	w.awaitLock("lock:{moves}:2")
	w.audit()
}

func TestWatchFollowsASentinelFailover(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	c := sentinel.Client(t)
	w := tracked(t, fast(sentinel.URL()))
	w.taken(c, "lock:before")
	old := sentinel.Master()
	sentinel.Failover(t)
	w.awaitState("the new master", func(s source.WatchState) bool {
		return whole(s) && s.Nodes[0].Addr != old.Addr() && s.Blind > 0
	})
	testredis.Eventually(t, soon, func() bool { return c.Set(t.Context(), "lock:after", "tok", 0).Err() == nil }, "no write after the failover")
	w.awaitLock("lock:after")
	w.audit()
}

// TestWatchNeedsNoMoreThanTheACL runs as the user of [redissource.ACL] and looks into the
// server's ACL LOG.
func TestWatchNeedsNoMoreThanTheACL(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL(leastUser(t)))
	c := srv.Client(t)
	r := fast(srv.URL())
	r.connect = connect.Config{URL: "redis://" + srv.Addr(), Username: "scanner", Password: "pw"}
	w := tracked(t, r)
	take(t, c, "lock:a", metaOf("a1"), time.Minute)
	w.awaitLock("lock:a")
	must(t, c.SetNX(t.Context(), "lock:b", "1", 0).Err())
	w.awaitLock("lock:b")
	w.audit()
	log, err := c.ACLLog(t.Context(), 10).Result()
	must(t, err)
	for _, e := range log {
		t.Errorf("refused: %s %s %s", e.Reason, e.Context, e.Object)
	}
}

// TestWatchFallsBackToKeyspaceNotifications where the server's user may not
// track, and says "sweep" until a notification has come.
func TestWatchFallsBackToKeyspaceNotifications(t *testing.T) {
	t.Parallel()
	rules := redissource.ACL()
	rules = append(rules, "-client|tracking")
	rules = append(rules, redissource.ACLKeyspace(0, &class.Set{})...)
	srv := testredis.Start(t, testredis.WithConfig("notify-keyspace-events KA"),
		testredis.WithACL("user scanner on >pw resetkeys resetchannels "+strings.Join(rules, " ")))
	c := srv.Client(t)
	r := fast(srv.URL())
	r.connect = connect.Config{URL: "redis://" + srv.Addr(), Username: "scanner", Password: "pw"}
	w := watch(t, r)
	w.awaitState("waiting for a first notification", func(s source.WatchState) bool {
		return s.Mode == source.WatchSweep && strings.Contains(s.Reason, "none has come")
	})
	w.taken(c, "lock:k")
	w.awaitState("keyspace", func(s source.WatchState) bool { return s.Mode == source.WatchKeyspace })
	must(t, c.PExpire(t.Context(), "lock:k", time.Minute).Err())
	w.await("lock:k", "a TTL", func(l locksteward.Lock) bool { return l.TTL > 0 })
	w.audit()
	if s := w.s.WatchState(); s.Mode != source.WatchKeyspace {
		t.Errorf("mode %s: %s", s.Mode, s.Reason)
	}
}

// TestKeyspaceWatchRecoversFromADeadConnection is TestWatchRecoversFromADeadConnection
// for keyspace notifications, which the server sends to a subscriber and forgets: they
// are believed again when one has come, and what was taken meanwhile is found.
// fault: 60
func TestKeyspaceWatchRecoversFromADeadConnection(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("notify-keyspace-events KA"))
	c := srv.Client(t)
	r := fast(srv.URL())
	r.reads.Watch = source.WatchKeyspace
	w := watch(t, r)
	believed := func(s source.WatchState) bool { return s.Mode == source.WatchKeyspace && len(s.Nodes) == 1 }
	w.taken(c, "lock:before")
	w.awaitState("believed", believed)
	w.audit()
	for round := range 3 {
		before := w.s.WatchState()
		id, _ := clientID(t, c, "locksteward-subscriber")
		must(t, c.ClientKillByFilter(t.Context(), "ID", id).Err())
		key := fmt.Sprintf("lock:%d", round)
		must(t, c.Set(t.Context(), key, "tok", 0).Err())
		w.awaitState("set up again", func(s source.WatchState) bool {
			return len(s.Nodes) == 1 && s.Nodes[0].Since.After(before.Nodes[0].Since)
		})
		if s := w.s.WatchState(); s.Blind <= before.Blind || s.Nodes[0].Repaired {
			t.Errorf("after the fault: blind %s, repaired %v", s.Blind, s.Nodes[0].Repaired)
		}
		find(t, sweep(t, w.s).Locks, key)
		if s := w.s.WatchState(); !s.Nodes[0].Repaired {
			t.Error("a complete sweep did not repair the watch")
		}
		w.taken(c, key+":after")
		w.awaitState("believed again", believed)
	}
	w.audit()
}

// TestKeyspaceNotificationsThatLackSomething are not believed once a sweep has
// found what they did not tell.
// fault: 60
func TestKeyspaceNotificationsThatLackSomething(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithConfig("notify-keyspace-events Kx")) // expiries alone
	c := srv.Client(t)
	r := fast(srv.URL())
	r.reads.Watch = source.WatchKeyspace
	w := watch(t, r)
	must(t, c.Set(t.Context(), "lock:short", "tok", 50*time.Millisecond).Err())
	w.awaitState("believed", func(s source.WatchState) bool { return s.Mode == source.WatchKeyspace })
	sweep(t, w.s)
	must(t, c.Set(t.Context(), "lock:untold", "tok", 0).Err())
	sweep(t, w.s)
	w.awaitState("not believed", func(s source.WatchState) bool {
		return s.Mode == source.WatchSweep && strings.Contains(s.Reason, "notify-keyspace-events")
	})
}

// trackingCommand is what the server calls a command that it refuses: before 7.0
// it does not say which subcommand of CLIENT that was.
func trackingCommand(t testing.TB) string {
	t.Helper()
	if testredis.Version(t).AtLeast(7, 0) {
		return "client|tracking"
	}
	return "run client;"
}

func TestWatchSaysWhyItCannot(t *testing.T) {
	t.Parallel()
	rules := append(redissource.ACL(), "-client|tracking")
	srv := testredis.Start(t, testredis.WithACL("user scanner on >pw resetkeys resetchannels "+strings.Join(rules, " ")))
	r := fast(srv.URL())
	r.connect = connect.Config{URL: "redis://" + srv.Addr(), Username: "scanner", Password: "pw"}
	w := watch(t, r)
	s := w.s.WatchState()
	if s.Mode != source.WatchSweep || !strings.Contains(s.Reason, trackingCommand(t)) {
		t.Errorf("state: %s %q", s.Mode, s.Reason)
	}
	for _, c := range s.Classes {
		if c.Coverage != source.CoverageNone || c.Reason != s.Reason {
			t.Errorf("class %+v", c)
		}
	}
	if s.Blind != 0 {
		t.Errorf("blind for %s: nothing was ever seen", s.Blind)
	}
	// Sweeps go on as ever.
	must(t, srv.Client(t).Set(t.Context(), "lock:a", "tok", 0).Err())
	find(t, sweep(t, w.s).Locks, "lock:a")
}

// TestWatchStopsAndStartsAgain leaves nothing behind in between.
func TestWatchStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := &reported{t: t, s: fast(srv.URL()).build(t), locks: map[string]locksteward.Lock{}}
	for i := range 3 {
		stop := w.run(t)
		w.awaitTracking()
		key := fmt.Sprintf("lock:%d", i)
		w.taken(c, key)
		stop()
		if s := w.s.WatchState(); s.Mode != source.WatchSweep || len(s.Nodes) != 0 {
			t.Errorf("after the end: %+v", s)
		}
		testredis.Eventually(t, soon, func() bool {
			id, _ := clientID(t, c, "locksteward-subscriber")
			return id == ""
		}, "the subscriber is still connected")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.s.AwaitWatch(ctx) // does not hang
}

// TestPausedWatchAsksNothing and is set up again afterwards, blind meanwhile.
func TestPausedWatchAsksNothing(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	c := srv.Client(t)
	w := tracked(t, fast(srv.URL()))
	w.taken(c, "lock:before")
	w.s.Pause(locksteward.Pause{By: "ana"})
	w.awaitState("paused", func(s source.WatchState) bool {
		return s.Mode == source.WatchSweep && strings.Contains(s.Reason, "paused")
	})
	testredis.Eventually(t, soon, func() bool {
		id, _ := clientID(t, c, "locksteward-subscriber")
		return id == ""
	}, "the subscriber is still connected")
	must(t, c.Set(t.Context(), "lock:during", "tok", 0).Err())
	must(t, c.Del(t.Context(), "lock:before").Err())
	w.s.Resume()
	w.awaitState("set up again", func(s source.WatchState) bool { return whole(s) && s.Blind > 0 })
	w.awaitEnd("lock:before", 1)
	find(t, sweep(t, w.s).Locks, "lock:during")
	w.audit()
}
