package scanner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/pace"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/scanner"
	redissource "github.com/locksteward/locksteward/source/redis"
)

// onReplicas is a scanner that asks replicas for the names.
func onReplicas(t testing.TB, url string) *scanner.Scanner {
	t.Helper()
	r := fast(url)
	r.reads.SweepOn = redissource.SweepReplicas
	r.connect.ReadTimeout = time.Second
	return r.build(t)
}

func offset(t testing.TB, c *redis.Client, field string) (n int64) {
	t.Helper()
	text, err := c.Info(t.Context(), "replication").Result()
	must(t, err)
	_, rest, _ := strings.Cut(text, field+":")
	_, err = fmt.Sscan(rest, &n)
	must(t, err)
	return n
}

// What a replica alone says is of no account: not a lock that only it has, and not a
// TTL that only it has.
// fault: 34
func TestSweepOnReplica(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t)
	replica := testredis.StartReplica(t, master, testredis.WithConfig("replica-read-only no"))
	c, rc := master.Client(t), replica.Client(t)
	fill(t, c, 3000)
	must(t, c.Set(t.Context(), "lock:kept", "tok1", time.Hour).Err())
	must(t, c.Set(t.Context(), "lock:persisted", "tok2", time.Hour).Err())
	must(t, c.Set(t.Context(), "lock:other", "tok3", time.Hour).Err())
	written := offset(t, c, "master_repl_offset")
	testredis.Eventually(t, 20*time.Second, func() bool { return offset(t, rc, "slave_repl_offset") >= written }, "the replica does not follow")
	must(t, rc.Set(t.Context(), "lock:ghost", "tok4", time.Hour).Err())
	must(t, rc.Persist(t.Context(), "lock:persisted").Err())
	must(t, rc.Set(t.Context(), "lock:other", "someone", time.Minute).Err())

	s := onReplicas(t, master.URL())
	before := scans(t, c)
	first := sweep(t, s)
	if got := scans(t, c); got != before {
		t.Errorf("the master was asked for its keys: %d SCANs", got-before)
	}
	if scans(t, rc) == 0 {
		t.Error("the replica was not asked for its keys")
	}
	made := passOf(first, master.Addr())
	if made.Replica != replica.Addr() || made.AsOf < written || made.Keys < 3003 || !made.Complete {
		t.Errorf("pass: %+v, want the replica %s as of %d or later", made, replica.Addr(), written)
	}
	if got := keysOf(first); got != "lock:kept lock:other lock:persisted" {
		t.Errorf("locks: %s", got)
	}
	for _, l := range first.Locks {
		if l.TTL < 50*time.Minute || l.Node != master.Addr() {
			t.Errorf("%s: TTL %s of %s, want what the master has", l.Key, l.TTL, l.Node)
		}
	}

	// What a replica lacks is there all the same, and what it still has is gone.
	must(t, rc.Del(t.Context(), "lock:kept").Err())
	must(t, c.Del(t.Context(), "lock:other").Err())
	must(t, rc.Set(t.Context(), "lock:other", "tok3", time.Hour).Err())
	second := sweep(t, s)
	if got := keysOf(second); got != "lock:kept lock:persisted" {
		t.Errorf("locks: %s", got)
	}
	if len(second.Endings) != 1 || second.Endings[0].Lock.Key != "lock:other" {
		t.Errorf("endings: %+v", second.Endings)
	}
}

func keysOf(s locksteward.Sweep) string { return strings.Join(names(s.Locks), " ") }

// Where no replica is in step the master is asked, and that is reported.
// fault: 34
func TestSweepWithoutReplicaInStep(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t)
	c := master.Client(t)
	must(t, c.Set(t.Context(), "lock:a", "tok", time.Hour).Err())
	s := onReplicas(t, master.URL())
	reported := func(want string) {
		t.Helper()
		got := sweep(t, s)
		if made := passOf(got, master.Addr()); made.Replica != "" || made.AsOf != 0 || !made.Complete || keysOf(got) != "lock:a" {
			t.Errorf("pass: %+v, locks %s", made, keysOf(got))
		}
		if notes := strings.Join(s.Stats().Degraded, "\n"); !strings.Contains(notes, want) || !strings.Contains(notes, master.Addr()) {
			t.Errorf("reported %q, want %q", notes, want)
		}
	}
	reported("names no replica that is online")

	replica := testredis.StartReplica(t, master)
	if made := passOf(sweep(t, s), master.Addr()); made.Replica != replica.Addr() {
		t.Fatalf("pass: %+v", made)
	}
	if notes := s.Stats().Degraded; len(notes) != 0 {
		t.Errorf("still reported: %q", notes)
	}

	replica.Pause() // it hangs, and its master does not know yet
	reported("replica " + replica.Addr())
	replica.Resume()

	// It is behind and stays so: it hears of writes late.
	rc := replica.Client(t)
	must(t, rc.Do(t.Context(), "client", "pause", "60000").Err())
	must(t, c.Set(t.Context(), "lock:a", "tok2", time.Hour).Err())
	reported("replica " + replica.Addr())
}

// A replica that is synchronised anew in the middle of a pass was empty for a while.
// fault: 34
func TestReplicaSynchronisedAnewMakesThePassIncomplete(t *testing.T) {
	t.Parallel()
	master := testredis.Start(t, testredis.WithConfig("repl-diskless-sync-delay 0"))
	c := master.Client(t)
	fill(t, c, 20_000)
	must(t, c.Set(t.Context(), "lock:a", "tok", 0).Err())
	replica := testredis.StartReplica(t, master)
	rc := replica.Client(t)
	r := slow(master.URL())
	r.reads.SweepOn, r.scan.Pace = redissource.SweepReplicas, pace.Config{Idle: 0.06, Busy: 0.06}
	s := r.build(t)
	if first := sweep(t, s); passOf(first, master.Addr()).Replica != replica.Addr() {
		t.Fatalf("pass: %+v", first.Masters)
	}
	host, port, _ := strings.Cut(master.Addr(), ":")
	got, err := during(t, s, r.gate, func() {
		must(t, rc.ReplicaOf(t.Context(), "no", "one").Err())
		must(t, rc.Do(t.Context(), "debug", "change-repl-id").Err())
		must(t, rc.ReplicaOf(t.Context(), host, port).Err())
		testredis.Eventually(t, 20*time.Second, func() bool {
			text, err := rc.Info(t.Context(), "replication").Result()
			return err == nil && strings.Contains(text, "master_link_status:up")
		}, "the replica does not come back")
	})
	if made := passOf(got, master.Addr()); err == nil || made.Complete || made.Replica != replica.Addr() {
		t.Errorf("pass: %+v, error %v", made, err)
	}
	if len(got.Endings) != 0 {
		t.Errorf("an incomplete pass ended %+v", got.Endings)
	}
	testredis.Eventually(t, 20*time.Second, func() bool {
		made := passOf(sweep(t, s), master.Addr())
		return made.Complete && made.Replica == replica.Addr()
	}, "no pass over the replica any more")
}

// fault: 34
func TestSweepOnReplicasOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.StartCluster(t, testredis.WithConfig("cluster-node-timeout 60000"))
	c := cluster.Client(t)
	replicas := map[string]string{}
	for _, n := range cluster.Nodes[:2] { // the third has none
		replicas[n.Addr()] = cluster.AddReplica(t, n).Addr()
	}
	for i := range 30 {
		must(t, c.Set(t.Context(), fmt.Sprintf("lock:%02d", i), "tok", time.Hour).Err())
	}
	s := onReplicas(t, cluster.URL())
	testredis.Eventually(t, 20*time.Second, func() bool { // until all nodes know of the replicas
		got := sweep(t, s)
		if len(got.Locks) != 30 || !got.Complete() {
			t.Fatalf("%d locks: %+v", len(got.Locks), got.Masters)
		}
		asked := 0
		for _, m := range got.Masters {
			if m.Replica != replicas[m.Node] && m.Replica != "" {
				t.Fatalf("pass: %+v", m)
			}
			if m.Replica != "" {
				asked++
			}
		}
		return asked == 2
	}, "the replicas are not asked")
	if notes := strings.Join(s.Stats().Degraded, "\n"); !strings.Contains(notes, cluster.Nodes[2].Addr()) || strings.Count(notes, "\n") != 0 {
		t.Errorf("reported %q", notes)
	}
}

func TestSweepOnReplicasBehindASentinel(t *testing.T) {
	t.Parallel()
	sentinel := testredis.StartSentinel(t)
	c := sentinel.Client(t)
	must(t, c.Set(t.Context(), "lock:a", "tok", time.Hour).Err())
	s := onReplicas(t, sentinel.URL())
	got := sweep(t, s)
	made := got.Masters[0]
	if made.Replica == "" || made.Replica == made.Node || keysOf(got) != "lock:a" {
		t.Errorf("pass: %+v, locks %s", made, keysOf(got))
	}
	old := sentinel.Master()
	sentinel.Failover(t)
	testredis.Eventually(t, 30*time.Second, func() bool {
		got, _ := s.Sweep(t.Context())
		return len(got.Masters) == 1 && got.Masters[0].Complete && got.Masters[0].Node != old.Addr() && keysOf(got) == "lock:a"
	}, "no sweep after the failover")
}
