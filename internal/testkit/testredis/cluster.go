package testredis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterSlots   = 16384
	clusterTimeout = 30 * time.Second
)

// Cluster is a Redis Cluster of three masters, without replicas unless
// [Cluster.AddReplica] makes one. Node i serves the i-th third of the slots. Of
// [StartClusterOf] they are as many as were asked for, with as many parts.
type Cluster struct {
	Nodes    []*Server
	Replicas []*Server

	t testing.TB
}

// StartCluster starts a Cluster that is gone at the end of the test. It takes
// about 3 s, of which a node of Redis waits 2 s before it serves. A node counts
// as failed after 1.5 s; [WithConfig] may change that.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	return StartClusterOf(t, 3, opts...)
}

// StartClusterOf is [StartCluster] with so many masters.
func StartClusterOf(t testing.TB, masters int, opts ...Option) *Cluster {
	t.Helper()
	need(t)
	base := []Option{withClusterNode(), WithConfig("cluster-node-timeout 1500")}
	if Version(t).AtLeast(6, 2) { // Before that the setting is not known.
		base = append(base, WithConfig("cluster-allow-replica-migration no"))
	}
	o := collect(append(base, opts...))
	if o.socket {
		t.Fatalf("start cluster: a node has no unix socket")
	}
	c := &Cluster{t: t}
	for range masters {
		c.Nodes = append(c.Nodes, start(t, o))
	}
	c.join()
	return c
}

// join gives out the slots and makes the nodes meet, each pair at once: left
// to gossip the third pair takes seconds.
func (c *Cluster) join() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), clusterTimeout)
	defer cancel()
	clients := make([]*redis.Client, len(c.Nodes))
	for i, n := range c.Nodes {
		clients[i] = redis.NewClient(n.Options())
		defer clients[i].Close()
		first, last := slotRange(i, len(c.Nodes))
		c.must(clients[i].Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		c.must(clients[i].ClusterAddSlotsRange(ctx, first, last).Err())
	}
	for i := range c.Nodes {
		for _, other := range c.Nodes[i+1:] {
			c.must(clients[i].Do(ctx, "CLUSTER", "MEET", "127.0.0.1", other.proc.Port(), other.proc.BusPort()).Err())
		}
	}
	for i, client := range clients {
		Eventually(c.t, clusterTimeout, func() bool { return clusterOK(ctx, client, len(clients)) },
			fmt.Sprintf("node %d (%s) sees the whole cluster as ok", i, c.Nodes[i].Addr()))
	}
}

// clusterOK reports whether the node serves and knows all masters with their
// slots.
func clusterOK(ctx context.Context, client *redis.Client, masters int) bool {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return false
	}
	return strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r", clusterSlots)) &&
		strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", masters)) &&
		strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", masters))
}

func slotRange(i, n int) (first, last int) {
	return clusterSlots * i / n, clusterSlots*(i+1)/n - 1
}

// URL returns the address as the configuration of a target wants it:
// redis+cluster:// or rediss+cluster://, all nodes, no credentials.
func (c *Cluster) URL() string {
	scheme := "redis+cluster://"
	if c.Nodes[0].opts.tls {
		scheme = "rediss+cluster://"
	}
	return scheme + strings.Join(c.Addrs(), ",")
}

// Addrs returns host:port of each node.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

// Options returns options for a cluster client with all permissions, for the
// caller to change.
func (c *Cluster) Options() *redis.ClusterOptions {
	o := c.Nodes[0].Options()
	return &redis.ClusterOptions{
		Addrs:                    c.Addrs(),
		Username:                 o.Username,
		Password:                 o.Password,
		TLSConfig:                o.TLSConfig,
		DisableIdentity:          true,
		MaintNotificationsConfig: quiet(),
	}
}

// Client returns a cluster client with all permissions, closed at the end of
// the test.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	return closing(t, redis.NewClusterClient(c.Options()))
}

// NodeOf returns the node that serves key now, by the word of the first node
// that runs.
func (c *Cluster) NodeOf(key string) *Server {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), clusterTimeout)
	defer cancel()
	for _, n := range slices.Concat(c.Nodes, c.Replicas) {
		client := redis.NewClient(n.Options())
		slot, slotErr := client.ClusterKeySlot(ctx, key).Result()
		//lint:ignore SA1019 Redis before 7.0 has no CLUSTER SHARDS, and tests run on 6.0 too.
		ranges, err := client.ClusterSlots(ctx).Result()
		c.must(client.Close())
		if slotErr != nil || err != nil {
			continue
		}
		for _, r := range ranges {
			if int64(r.Start) <= slot && slot <= int64(r.End) {
				return c.masterOf(r)
			}
		}
	}
	c.t.Fatalf("find node of %q: no node knows its slot", key)
	return nil
}

// masterOf returns the first node of the range: the server names the master first.
func (c *Cluster) masterOf(r redis.ClusterSlot) *Server {
	c.t.Helper()
	for _, n := range slices.Concat(c.Nodes, c.Replicas) {
		if len(r.Nodes) > 0 && strings.HasSuffix(r.Nodes[0].Addr, fmt.Sprintf(":%d", n.proc.Port())) {
			return n
		}
	}
	c.t.Fatalf("find master of slots %d to %d: %v is none of %v", r.Start, r.End, r.Nodes, c.Addrs())
	return nil
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("cluster: %v", err)
	}
}

func addrs(servers []*Server) []string {
	out := make([]string, len(servers))
	for i, s := range servers {
		out[i] = s.Addr()
	}
	return out
}
