package scanner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/catalogue"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/rules"
)

// wantLostInFailover checks what server/failover says of locks that may be lost.
func wantLostInFailover(t *testing.T, e *rules.Engine, count, keys string) {
	t.Helper()
	f := finding(e, "server/failover", "")
	if f == nil {
		t.Fatal("the failover is not reported")
	}
	said := evidenceOf(f)
	if !strings.Contains(catalogue.Text("en", f.Summary), ", and "+count+" may be lost: ") || !strings.Contains(said, "is not proved: "+keys+"\n") {
		t.Errorf("%s; %s", catalogue.Text("en", f.Summary), said)
	}
}

// Two masters of a Cluster of which one dies with a lock that its replica had not
// saw: that one is named, also if somebody has taken it on the new master since,
// and none of the other master.
// fault: 31
func TestClusterFailoverLosesALock(t *testing.T) {
	t.Parallel()
	for _, watching := range []bool{true, false} {
		t.Run(fmt.Sprint("watch ", watching), func(t *testing.T) {
			t.Parallel()
			cluster := testredis.StartCluster(t)
			c := cluster.Client(t)
			ctx := t.Context()
			owner := cluster.NodeOf("{a}")
			heir := cluster.AddReplica(t, owner)
			if cluster.NodeOf("{b}") == owner {
				t.Fatal("both tags are on one master")
			}
			e, err := rules.New(nil, nil, nil)
			must(t, err)
			w := &reported{t: t, s: fast(cluster.URL()).build(t), locks: map[string]locksteward.Lock{}}
			if watching {
				w.run(t)
				w.awaitTracking()
			}
			must(t, c.Set(ctx, "lock:{a}:old", "tok", time.Hour).Err())
			master := owner.Client(t)
			there := heir.Client(t)
			// WAIT reports the writes of its own client alone, so the replica is asked.
			testredis.Eventually(t, 10*time.Second, func() bool { return there.DBSize(ctx).Val() == 1 }, "the replica has not received")
			// The replica asks with a password that the master does not know.
			must(t, there.ConfigSet(ctx, "masterauth", "wrong").Err())
			must(t, master.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err())
			testredis.Eventually(t, 10*time.Second, func() bool {
				return strings.Contains(master.Info(ctx, "replication").Val(), "connected_slaves:0")
			}, "the replica still hears")
			for _, key := range []string{"lock:{a}:gone", "lock:{a}:again", "lock:{b}:other"} {
				must(t, c.Set(ctx, key, "tok-"+key, time.Hour).Err())
			}
			if got := judged(t, w.s, e); len(got.Locks) != 4 {
				t.Fatalf("locks %q", names(got.Locks))
			}
			owner.Kill()
			must(t, there.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err())
			testredis.Eventually(t, 20*time.Second, func() bool {
				return there.Set(ctx, "lock:{a}:again", "another", time.Hour).Err() == nil
			}, "the replica does not take over")
			must(t, c.Del(ctx, "lock:{b}:other").Err())
			var over []locksteward.ServerEvent
			testredis.Eventually(t, 30*time.Second, func() bool {
				got, err := w.s.Sweep(ctx)
				e.Evaluate(got)
				over = happened(got, locksteward.ServerFailedOver)
				return err == nil && got.Complete() && len(over) > 0
			}, "no failover seen")
			if len(over) != 1 || over[0].Locks != 2 || !slices.Equal(over[0].Keys, []string{"lock:{a}:again", "lock:{a}:gone"}) {
				t.Errorf("the failover may have taken %+v", over)
			}
			wantLostInFailover(t, e, "2 locks", "lock:{a}:again, lock:{a}:gone")
		})
	}
}

// What the new master says to have had from the one before was not lost by the
// failover: it is gone since somebody released it.
// fault: 31
func TestFailoverNamesNoReleasedLock(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 7, 0, "INFO does not tell the server's time")
	sentinel := testredis.StartSentinel(t)
	c := sentinel.Client(t)
	ctx := t.Context()
	s := fast(sentinel.URL()).build(t)
	e, err := rules.New(nil, nil, nil)
	must(t, err)
	must(t, c.Set(ctx, "lock:old", "tok", time.Hour).Err())
	judged(t, s, e) // sees it
	judged(t, s, e) // and that the master has come further
	must(t, c.Set(ctx, "lock:new", "tok", time.Hour).Err())
	judged(t, s, e)
	must(t, c.Wait(ctx, 1, 5*time.Second).Err())
	must(t, c.Del(ctx, "lock:old", "lock:new").Err())
	must(t, c.Wait(ctx, 1, 5*time.Second).Err())
	sentinel.Failover(t)
	testredis.Eventually(t, 20*time.Second, func() bool {
		got, err := s.Sweep(ctx)
		e.Evaluate(got)
		return err == nil && got.Complete() && len(happened(got, locksteward.ServerFailedOver)) > 0
	}, "no failover seen")
	// Of the new one it is not proved: it was taken after the begin of the last sweep.
	wantLostInFailover(t, e, "1 lock", "lock:new")
}
