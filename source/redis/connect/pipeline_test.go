package connect_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// No command of a pipeline looks answered where the login was refused.
func TestPipelineAfterRefusedLogin(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t, testredis.WithACL("scanner on >secret ~* &* +@all"))
	conn, err := connect.Open(connect.Config{URL: "redis://scanner:wrong@" + srv.Addr() + "/0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	dedicated := conn.Dedicated(t.Context(), srv.Addr(), "", nil)
	t.Cleanup(func() { _ = dedicated.Close() })
	for name, client := range map[string]redis.UniversalClient{"pool": conn.Universal(), "dedicated": dedicated} {
		pipe := client.Pipeline()
		one, two := pipe.PTTL(t.Context(), "a"), pipe.Exists(t.Context(), "b")
		if _, err := pipe.Exec(t.Context()); err == nil || one.Err() == nil || two.Err() == nil {
			t.Errorf("%s: %v, %v, %v", name, err, one.Err(), two.Err())
		}
	}
}
