package connect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// All that the server tells in a burst comes, in order, over TLS too, where many
// records lie in one read, and one in two.
func TestSubscriberHearsABurst(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]testredis.Option{"plain": nil, "tls": {testredis.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testredis.Start(t, opts...)
			cfg := connect.Config{URL: srv.URL()}
			if name == "tls" {
				cfg.CAFile = srv.CAFile()
			}
			conn := open(t, cfg)
			sub := conn.Subscriber(t.Context(), srv.Addr(), "-test", nil)
			ps := sub.Subscribe(t.Context(), "news")
			t.Cleanup(func() {
				if err := ps.Close(); err != nil {
					t.Error(err)
				}
				if err := sub.Close(); err != nil {
					t.Error(err)
				}
			})
			if _, err := ps.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			const count = 3000
			word := func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("x", i%500)) }
			rdb := srv.Client(t)
			pipe := rdb.Pipeline()
			for i := range count {
				pipe.Publish(t.Context(), "news", word(i))
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range count {
				m, err := ps.ReceiveMessage(t.Context())
				if err != nil || m.Payload != word(i) {
					t.Fatalf("message %d: %v, %v", i, m, err)
				}
			}
		})
	}
}
