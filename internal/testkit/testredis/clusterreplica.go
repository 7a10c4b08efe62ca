package testredis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// AddReplica starts a replica of master, which is a node of c, and returns when
// it has the master's data and all nodes know it. It takes part in failovers
// like any replica of a Cluster.
func (c *Cluster) AddReplica(t testing.TB, master *Server) *Server {
	t.Helper()
	r := start(t, master.opts)
	ctx, cancel := context.WithTimeout(t.Context(), clusterTimeout)
	defer cancel()
	mine, theirs := redis.NewClient(r.Options()), redis.NewClient(master.Options())
	defer mine.Close()
	defer theirs.Close()
	id, err := theirs.ClusterMyID(ctx).Result()
	c.must(err)
	if user, password := master.opts.login(); password != "" {
		c.must(mine.ConfigSet(ctx, "masteruser", user).Err())
		c.must(mine.ConfigSet(ctx, "masterauth", password).Err())
	}
	for _, n := range c.Nodes {
		c.must(mine.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", n.proc.Port(), n.proc.BusPort()).Err())
	}
	Eventually(t, clusterTimeout, func() bool {
		return mine.Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil
	}, fmt.Sprintf("%s knows its master %s", r.Addr(), master.Addr()))
	r.awaitFollowing(master)
	c.Replicas = append(c.Replicas, r)
	self, err := mine.ClusterMyID(ctx).Result()
	c.must(err)
	for _, n := range append([]*Server{r}, c.Nodes...) {
		client := redis.NewClient(n.Options())
		defer client.Close()
		Eventually(t, clusterTimeout, func() bool {
			nodes, err := client.ClusterNodes(ctx).Result()
			if err != nil {
				return false
			}
			for line := range strings.Lines(nodes) {
				if f := strings.Fields(line); len(f) > 7 && f[0] == self {
					return strings.Contains(f[2], "slave") && f[3] == id
				}
			}
			return false
		}, fmt.Sprintf("%s knows the replica %s", n.Addr(), r.Addr()))
	}
	return r
}
