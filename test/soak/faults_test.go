package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// settles is how long a Cluster may take to be whole again on a loaded machine.
const settles = 8 * time.Minute

func testEventually(t *testing.T, cond func() bool, msg string) {
	t.Helper()
	testredis.Eventually(t, settles, cond, msg)
}

// servers are a Cluster whose masters have a replica each.
type servers struct {
	t       *testing.T
	cluster *testredis.Cluster
}

func newServers(t *testing.T) *servers {
	// A node that a full machine keeps waiting is not dead.
	timeout := 4 * time.Second
	if *length < time.Minute {
		timeout = 1500 * time.Millisecond
	}
	c := testredis.StartCluster(t, testredis.WithConfig(fmt.Sprintf("cluster-node-timeout %d", timeout.Milliseconds()), "cluster-replica-validity-factor 0", "repl-backlog-size 64mb"))
	for _, n := range slices.Clone(c.Nodes) {
		c.AddReplica(t, n)
	}
	return &servers{t, c}
}

func (s *servers) all() []*testredis.Server {
	return slices.Concat(s.cluster.Nodes, s.cluster.Replicas)
}

// on asks one node.
func (s *servers) on(n *testredis.Server, args ...any) (string, error) {
	o := n.Options()
	o.ReadTimeout = 10 * time.Second
	c := redis.NewClient(o)
	defer c.Close()
	got, err := c.Do(context.Background(), args...).Result()
	return fmt.Sprint(got), err
}

// is says whether a node's word about its replication has lines.
func (s *servers) is(n *testredis.Server, lines ...string) bool {
	info, err := s.on(n, "INFO", "replication")
	for _, line := range lines {
		if !strings.Contains(info, line+"\r\n") {
			return false
		}
	}
	return err == nil
}

// masters are the nodes that serve slots.
func (s *servers) masters() []*testredis.Server {
	var list []*testredis.Server
	for _, n := range s.all() {
		if s.is(n, "role:master") {
			list = append(list, n)
		}
	}
	return list
}

// whole waits until there are three masters, and three replicas that have all of
// their data.
func (s *servers) whole() {
	s.t.Helper()
	testEventually(s.t, func() bool {
		masters := s.masters()
		for _, m := range masters {
			if info, err := s.on(m, "CLUSTER", "INFO"); err != nil || !strings.Contains(info, "cluster_state:ok") {
				return false
			}
			if !s.is(m, "connected_slaves:1") {
				return false
			}
		}
		for _, n := range s.all() {
			if !slices.Contains(masters, n) && !s.is(n, "role:slave", "master_link_status:up", "master_sync_in_progress:0") {
				return false
			}
		}
		return len(masters) == 3
	}, "the cluster is whole")
}

// failOver kills a master, and lets it come back when a replica has its place.
func (s *servers) failOver(rng *rand.Rand) string {
	s.t.Helper()
	s.whole()
	masters := s.masters()
	victim := masters[rng.IntN(len(masters))]
	victim.Kill()
	testEventually(s.t, func() bool { return len(s.masters()) == 3 }, "a replica takes the place of its master")
	victim.Restart()
	s.whole()
	return "master " + victim.Addr() + " killed"
}

// reshard moves slots from one master to another, key by key.
func (s *servers) reshard(rng *rand.Rand, slots int) string {
	s.t.Helper()
	s.whole()
	masters := s.masters()
	rng.Shuffle(len(masters), func(i, j int) { masters[i], masters[j] = masters[j], masters[i] })
	from, to := masters[0], masters[1]
	fromID, toID := s.must(from, "CLUSTER", "MYID"), s.must(to, "CLUSTER", "MYID")
	host, port, _ := strings.Cut(to.Addr(), ":")
	keys := 0
	c := redis.NewClient(from.Options())
	defer c.Close()
	for range slots {
		slot := s.slotOf(fromID, rng)
		s.must(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
		s.must(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
		for quiet := 0; quiet < 2; {
			list, err := c.ClusterGetKeysInSlot(context.Background(), slot, 100).Result()
			if err != nil {
				s.t.Errorf("reshard: %v", err)
				return ""
			}
			if len(list) == 0 {
				quiet++
				continue
			}
			quiet = 0
			args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
			for _, k := range list {
				args = append(args, k)
			}
			s.must(from, args...)
			keys += len(list)
		}
		for _, n := range append([]*testredis.Server{to, from}, masters[2:]...) {
			s.must(n, "CLUSTER", "SETSLOT", slot, "NODE", toID)
		}
	}
	return fmt.Sprintf("%d slots with %d keys moved", slots, keys)
}

// slotOf is a slot of a node.
func (s *servers) slotOf(id string, rng *rand.Rand) int {
	s.t.Helper()
	c := redis.NewClient(s.masters()[0].Options())
	defer c.Close()
	shards, err := c.ClusterShards(context.Background()).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var list []redis.SlotRange
	for _, shard := range shards {
		if slices.ContainsFunc(shard.Nodes, func(n redis.Node) bool { return n.ID == id }) {
			list = append(list, shard.Slots...)
		}
	}
	if len(list) == 0 {
		s.t.Fatalf("node %s has no slots", id)
	}
	r := list[rng.IntN(len(list))]
	return int(r.Start + rng.Int64N(r.End-r.Start+1))
}

func (s *servers) must(n *testredis.Server, args ...any) string {
	s.t.Helper()
	got, err := s.on(n, args...)
	if err != nil {
		s.t.Fatalf("%v on %s: %v", args[:2], n.Addr(), err)
	}
	return got
}
