package connect_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/respcheck"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/connect"
)

// single is a client with the connections of a Conn, of which each command is sent but once.
func single(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c, err := connect.Open(connect.Config{URL: "redis://" + addr + "/0", PoolSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	node, err := c.Node(addr)
	if err != nil {
		t.Fatal(err)
	}
	opt := *node.Options()
	opt.MaxRetries = -1
	rdb := redis.NewClient(&opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// TestPoolSeesAnEndedConnection shows that the check of replies leaves go-redis its look
// at the socket: a connection that the server ended while it lay in the pool is replaced
// before a command is sent over it.
func TestPoolSeesAnEndedConnection(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	rdb, other := single(t, srv.Addr()), srv.Client(t)
	for range 5 {
		id, err := rdb.ClientID(t.Context()).Result()
		if err != nil {
			t.Fatalf("over a connection that was ended in the pool: %v", err)
		}
		if err := other.ClientKillByFilter(t.Context(), "ID", strconv.FormatInt(id, 10)).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPoolSeesHalfAReply has a server send the begin of a reply that nobody asked for:
// the connection is not used again.
func TestPoolSeesHalfAReply(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	liar := testredis.NewLiar(t, srv.Addr())
	rdb := single(t, liar.Addr())
	liar.Tell("ping", func(w io.Writer) error {
		_, err := io.WriteString(w, "+PONG\r\n*")
		return err
	})
	for range 5 {
		if got, err := rdb.Ping(t.Context()).Result(); err != nil || got != "PONG" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// TestRefusalIsNotRetried has a server lie to a client that asks again when a connection
// broke: it does not.
func TestRefusalIsNotRetried(t *testing.T) {
	t.Parallel()
	srv := testredis.Start(t)
	liar := testredis.NewLiar(t, srv.Addr())
	c, err := connect.Open(connect.Config{URL: "redis://" + liar.Addr() + "/0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	liar.Tell("ping", func(w io.Writer) error {
		_, err := io.WriteString(w, "*2147483647\r\n")
		return err
	})
	err = c.Universal().Ping(t.Context()).Err()
	if bad, ok := errors.AsType[*respcheck.Error](err); !ok || bad.Server != liar.Addr() {
		t.Errorf("got %v, want what was wrong with %s", err, liar.Addr())
	}
	if reported := liar.Lied(); reported != 1 {
		t.Errorf("asked %d times, want once", reported)
	}
	if reason := connect.Explain(err); !strings.Contains(reason, liar.Addr()) || !strings.Contains(reason, "an array of 2147483647") {
		t.Errorf("reason %q does not say what was wrong with which server", reason)
	}
}
