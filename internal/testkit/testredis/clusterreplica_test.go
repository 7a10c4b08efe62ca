package testredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// A replica of a Cluster has the data of its master and can take its place.
func TestClusterReplicaTakesOver(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t)
	master := c.NodeOf("k")
	replica := c.AddReplica(t, master)
	if err := c.Client(t).Set(t.Context(), "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	there := replica.Client(t)
	testredis.Eventually(t, 10*time.Second, func() bool {
		n, err := there.DBSize(t.Context()).Result()
		return err == nil && n == 1
	}, "the replica has the key")
	master.Kill()
	if err := there.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err(); err != nil {
		t.Fatal(err)
	}
	// Each try has a client of its own: one that asked before the nodes agreed
	// keeps the dead master in its map of slots for 10 s and more.
	testredis.Eventually(t, 20*time.Second, func() bool {
		client := redis.NewClusterClient(c.Options())
		defer client.Close()
		v, err := client.Get(t.Context(), "k").Result()
		return err == nil && v == "v"
	}, "the replica serves its master's slots")
	// The client asked any node; NodeOf asks the first that runs, which may learn it later.
	testredis.Eventually(t, 20*time.Second, func() bool { return c.NodeOf("k") == replica }, "another node serves the key")
}

// Requests that are dropped never reach the server; a connection that lost one
// is reset afterwards.
func TestProxyDropsRequests(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	o := s.Options()
	o.Addr, o.MaxRetries, o.ReadTimeout = p.Addr(), -1, 2*time.Second
	client := redis.NewClient(o)
	defer client.Close()
	mustSet(t, client, "k", "v")
	p.DropRequests(true)
	if err := client.Set(t.Context(), "k", "w", 0).Err(); !isTimeout(err) {
		t.Errorf("set into a network that loses it: %v, want a timeout", err)
	}
	if got := s.Client(t).Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("the server has %q, want v", got)
	}
	p.Heal()
	testredis.Eventually(t, 10*time.Second, func() bool {
		return client.Set(t.Context(), "k", "w", 0).Err() == nil
	}, "the network is whole again")
}

// A protocol cut into single bytes is the same protocol.
func TestProxySlices(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	p := testredis.NewProxy(t, s.Addr())
	p.Slice(1)
	o := s.Options()
	o.Addr = p.Addr()
	client := redis.NewClient(o)
	defer client.Close()
	mustSet(t, client, "k", "value of some length")
	if got := client.Get(t.Context(), "k").Val(); got != "value of some length" {
		t.Errorf("got %q", got)
	}
}
