package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// clusterNemeses break a Cluster of three masters. All locks are on one of them,
// which has a replica.
var clusterNemeses = []nemesis{
	{name: "reshard", topology: "cluster", strays: true, strike: reshard},
	{name: "cluster down", topology: "cluster", strike: clusterDown},
	{name: "cluster failover", topology: "cluster", damage: restores, strays: true, times: 1, strike: clusterFailover},
}

func newCluster(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.cluster = testredis.StartCluster(t)
	owner := b.cluster.Nodes[0]
	b.cluster.AddReplica(t, owner)
	b.locks = nil
	for i := 0; len(b.locks) < 3; i++ {
		if key := fmt.Sprintf("lock:%d", i); b.cluster.NodeOf(key) == owner {
			b.locks = append(b.locks, key)
		}
	}
	b.dial = []redis.UniversalClient{b.cluster.Client(t), b.cluster.Client(t)}
	o := b.cluster.Options()
	o.ReadTimeout = 20 * time.Second
	admin := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = admin.Close() })
	b.admin = admin
	return b
}

// masters are the nodes that serve slots now.
func (b *bed) masters() []*testredis.Server {
	var list []*testredis.Server
	for _, n := range slices.Concat(b.cluster.Nodes, b.cluster.Replicas) {
		if strings.HasPrefix(fmt.Sprint(b.on(n, "INFO", "replication")), "# Replication\r\nrole:master") {
			list = append(list, n)
		}
	}
	return list
}

// reshard moves the slot of one lock to another node, key by key, while the lock
// is in use.
func reshard(b *bed) {
	b.t.Helper()
	key := b.locks[b.rng.IntN(len(b.locks))]
	from := b.cluster.NodeOf(key)
	masters := b.masters()
	at := slices.IndexFunc(masters, func(n *testredis.Server) bool { return n != from })
	to := masters[at]
	slot := b.on(from, "CLUSTER", "KEYSLOT", key).(int64)
	fromID, toID := b.on(from, "CLUSTER", "MYID"), b.on(to, "CLUSTER", "MYID")
	b.on(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	b.on(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	host, port, _ := strings.Cut(to.Addr(), ":")
	for quiet := 0; quiet < 3; {
		keys := b.on(from, "CLUSTER", "GETKEYSINSLOT", slot, 1).([]any)
		if len(keys) == 0 {
			// The other node may still send somebody here.
			quiet++
		} else {
			quiet = 0
			b.on(from, "MIGRATE", host, port, keys[0], 0, 5000)
		}
		pause(30 * time.Millisecond)
	}
	for _, n := range append([]*testredis.Server{to, from}, masters...) {
		b.on(n, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
}

// clusterDown takes a slot without locks from the node of the locks: it then
// serves none at all.
func clusterDown(b *bed) {
	owner := b.cluster.NodeOf(b.locks[0])
	used := map[int64]bool{}
	for _, key := range b.locks {
		used[b.on(owner, "CLUSTER", "KEYSLOT", key).(int64)] = true
	}
	slot := int64(0)
	for used[slot] {
		slot++
	}
	b.on(owner, "CLUSTER", "DELSLOTS", slot)
	testredis.Eventually(b.t, 10*time.Second, func() bool {
		return strings.Contains(fmt.Sprint(b.on(owner, "CLUSTER", "INFO")), "cluster_state:fail")
	}, "the node sees the cluster down")
	pause(longerThanLease)
	// The gossip of the others may have given it back already.
	if err := owner.Client(b.t).Do(context.Background(), "CLUSTER", "ADDSLOTS", slot).Err(); err != nil && !strings.Contains(err.Error(), "already busy") {
		b.t.Fatal(err)
	}
	testredis.Eventually(b.t, 10*time.Second, func() bool {
		return strings.Contains(fmt.Sprint(b.on(owner, "CLUSTER", "INFO")), "cluster_state:ok")
	}, "the node sees the cluster up")
}

// clusterFailover kills the master of the locks when its replica has not heard
// of the last ones, and lets it come back as a replica.
func clusterFailover(b *bed) {
	old := b.cluster.NodeOf(b.locks[0])
	heir := b.heir(old)
	b.sever(old, heir)
	pause(leaseTTL / 2)
	b.promote(old, heir)
	old.Restart()
	b.demoted(old)
}

// heir returns the replica of master.
func (b *bed) heir(master *testredis.Server) *testredis.Server {
	b.t.Helper()
	id := fmt.Sprint(b.on(master, "CLUSTER", "MYID"))
	for _, n := range slices.Concat(b.cluster.Nodes, b.cluster.Replicas) {
		for line := range strings.Lines(fmt.Sprint(b.on(n, "CLUSTER", "NODES"))) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.Contains(f[2], "myself,slave") && f[3] == id {
				return n
			}
		}
	}
	b.t.Fatalf("%s has no replica", master.Addr())
	return nil
}

// sever ends replication for good: the replica asks with a password that the
// master does not know, and is refused.
func (b *bed) sever(master, replica *testredis.Server) {
	b.t.Helper()
	b.on(replica, "CONFIG", "SET", "masterauth", "wrong")
	b.on(master, "CLIENT", "KILL", "TYPE", "replica")
	testredis.Eventually(b.t, 10*time.Second, func() bool {
		return strings.Contains(fmt.Sprint(b.on(master, "INFO", "replication")), "connected_slaves:0")
	}, "the replica hears nothing any more")
}

// promote kills the master and makes heir take its place.
func (b *bed) promote(old, heir *testredis.Server) {
	b.t.Helper()
	old.Kill()
	b.reconcile(heir)
	b.on(heir, "CLUSTER", "FAILOVER", "TAKEOVER")
	// Asked directly: a client of the Cluster may not know of it for long.
	direct := heir.Client(b.t)
	key := b.locks[0]
	testredis.Eventually(b.t, 20*time.Second, func() bool {
		return b.cluster.NodeOf(key) == heir && direct.Set(context.Background(), "{"+key+"}:probe", 1, time.Second).Err() == nil
	}, "the replica serves the locks")
}

// Fault 37: the slot of a lock moves to another node and back, key by key: MOVED,
// ASK and TRYAGAIN.
// fault: 37
func TestReshard(t *testing.T) {
	storm(t, named("reshard"))
}

// Fault 36: CLUSTERDOWN.
// fault: 36
func TestClusterDown(t *testing.T) {
	storm(t, named("cluster down"))
}

// Fault 31: a replica that has not heard of the last locks becomes master of
// their slots.
// fault: 31
func TestClusterFailover(t *testing.T) {
	storm(t, named("cluster failover"))
}

// Fault 31: the master of some locks dies for good and a replica takes its
// slots: clients that are connected must find it, and not ask the dead one until
// their map of the Cluster is old enough to be read again.
func TestClusterMasterStaysDead(t *testing.T) {
	t.Parallel()
	b := newCluster(t)
	c := b.open(0, lock.Options{Timeout: time.Second}) // the first lock needs connections
	take := func(wait time.Duration) error {
		h, err := c.Acquire(t.Context(), b.locks[0], lock.Lease{TTL: time.Second, Wait: wait})
		if err != nil {
			return err
		}
		return h.Release(t.Context())
	}
	if err := take(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	old := b.cluster.NodeOf(b.locks[0])
	b.promote(old, b.heir(old))
	began := time.Now()
	const most = 6 * time.Second
	var last error
	for {
		if last = take(time.Second); last == nil {
			break
		}
		if time.Since(began) > most {
			t.Fatalf("no lock %s after the replica has taken over: %v", most, last)
		}
	}
	t.Logf("locks work %s after the replica has taken over", time.Since(began))
}
