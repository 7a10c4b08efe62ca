package testredis_test

import (
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

func TestStartReplica(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]testredis.Option{
		"plain":    nil,
		"TLS":      {testredis.WithTLS()},
		"ACL":      {testredis.WithACL("default off")},
		"password": {testredis.WithConfig("requirepass swordfish", "masterauth swordfish")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := testredis.Start(t, opts...)
			writer := master.Client(t)
			if err := writer.Set(t.Context(), "before", "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
			replica := testredis.StartReplica(t, master, opts...)
			reader := replica.Client(t)
			if got, err := reader.Get(t.Context(), "before").Result(); err != nil || got != "1" {
				t.Fatalf("get on replica: %q, %v; want what the master had", got, err)
			}
			if err := reader.Set(t.Context(), "k", "v", 0).Err(); err == nil {
				t.Error("the replica took a write")
			}
			if err := writer.Set(t.Context(), "after", "2", 0).Err(); err != nil {
				t.Fatal(err)
			}
			testredis.Eventually(t, 10*time.Second, func() bool {
				return reader.Get(t.Context(), "after").Val() == "2"
			}, "a write reaches the replica")
		})
	}
}
