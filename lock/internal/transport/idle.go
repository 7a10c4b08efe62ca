package transport

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// fresh is how long a connection that answered is taken for alive. go-redis looks
// at each one that it takes out of its pool, which is two system calls of the ten
// of a pair; but a server that was gone before a request was sent cannot be distinguished
// from one that went with it, so that this is no longer than a round trip may be.
const fresh = 10 * time.Millisecond

// maxOutOfPool is how long a connection stays out of the pool at most. When it comes back
// the pool does what is due: it ends one that is older than ConnMaxLifetime and logs in
// again with credentials that were changed.
const maxOutOfPool = time.Second

// sender is what a round trip goes over: the pool, or a connection that is idleConns.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// idleConns are the connections that a queue keeps out of the pool between round trips
// that follow each other closely. The queue's mutex guards them; there are never
// more of them, with those under way, than maxInFlight.
type idleConns struct {
	list     []*idleConn // by answered
	answered time.Time   // the last of all answers
}

type idleConn struct {
	conn     *redis.Conn
	since    time.Time // out of the pool
	answered time.Time
}

// take returns a connection to use without a look at it, or nil for the pool,
// and those that go back there.
func (c *idleConns) take(rdb *redis.Client, now time.Time) (conn *idleConn, stale []*idleConn) {
	if now.Sub(c.answered) >= fresh {
		stale, c.list = c.list, nil
		return nil, stale
	}
	n := len(c.list)
	if n == 0 || now.Sub(c.list[n-1].answered) >= fresh {
		stale, c.list = c.list, nil
		return &idleConn{conn: rdb.Conn(), since: now}, stale
	}
	conn, c.list = c.list[n-1], c.list[:n-1]
	if now.Sub(conn.since) >= maxOutOfPool {
		return &idleConn{conn: rdb.Conn(), since: now}, []*idleConn{conn}
	}
	return conn, nil
}

// put keeps a connection that has answered, nil for one of the pool.
func (c *idleConns) put(conn *idleConn, now time.Time) {
	c.answered = now
	if conn != nil {
		conn.answered = now
		c.list = append(c.list, conn)
	}
}

// toPool gives connections back, of which those that failed are closed.
func toPool(list []*idleConn) {
	for _, c := range list {
		_ = c.conn.Close() // of what it says nothing is to be done
	}
}
