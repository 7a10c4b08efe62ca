package testredis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]testredis.Option{
		"plain":       nil,
		"TLS and ACL": {testredis.WithTLS(), testredis.WithACL("default off")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testredis.StartSentinel(t, opts...)
			client := s.Client(t)
			if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			first := s.Master()
			if first != s.Servers[0] {
				t.Fatalf("master is %s, want the first server %s", first.Addr(), s.Servers[0].Addr())
			}
			s.Failover(t)
			second := s.Master()
			if second != s.Servers[1] {
				t.Fatalf("master is %s after failover, want %s", second.Addr(), s.Servers[1].Addr())
			}
			testredis.Eventually(t, 10*time.Second, func() bool {
				return client.Set(t.Context(), "k", "w", 0).Err() == nil
			}, "the failover client reaches the new master")
			if got := second.Client(t).Get(t.Context(), "k").Val(); got != "w" {
				t.Errorf("new master has %q, want what was written after the failover", got)
			}

			first.Restart()
			old := first.Client(t)
			testredis.Eventually(t, 30*time.Second, func() bool {
				return strings.Contains(old.Info(t.Context(), "replication").Val(), "role:slave")
			}, "the old master comes back as a replica")
			if !strings.HasSuffix(s.URL(), "/"+testredis.SentinelMaster) || strings.Count(s.URL(), ",") != 2 {
				t.Errorf("URL %q does not name three sentinels and the master", s.URL())
			}
		})
	}
}
