package testredis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestClusterServesEverySlot(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]testredis.Option{
		"plain":       nil,
		"TLS and ACL": {testredis.WithTLS(), testredis.WithACL("default off")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testredis.StartCluster(t, opts...)
			client := c.Client(t)
			owners := map[string]bool{}
			for i := range 30 {
				key := fmt.Sprintf("k%d", i)
				if err := client.Set(t.Context(), key, "v", time.Minute).Err(); err != nil {
					t.Fatalf("set %q: %v", key, err)
				}
				node := c.NodeOf(key)
				owners[node.Addr()] = true
				if n, err := node.Client(t).Exists(t.Context(), key).Result(); err != nil || n != 1 {
					t.Fatalf("%q on its node: %d, %v; want 1", key, n, err)
				}
			}
			if len(owners) != 3 {
				t.Errorf("30 keys live on %d nodes, want 3", len(owners))
			}
			if got := strings.Count(c.URL(), ","); got != 2 || !strings.Contains(c.URL(), "+cluster://127.0.0.1:") {
				t.Errorf("URL %q does not name three nodes", c.URL())
			}
		})
	}
}

func TestClusterNodeComesBack(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t)
	client := c.Client(t)
	node := c.NodeOf("k")
	node.Kill()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err == nil {
		t.Fatal("set on a dead node succeeded")
	}
	node.Restart()
	testredis.Eventually(t, 20*time.Second, func() bool {
		return client.Set(t.Context(), "k", "v", 0).Err() == nil
	}, "the restarted node serves its slots")
}
