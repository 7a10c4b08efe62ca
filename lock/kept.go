package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// fresh is how long a connection that answered is taken for alive. go-redis looks
// at each one that it takes out of its pool, which is two system calls of the ten
// of a pair; but a server that was gone before a request was sent cannot be told
// from one that went with it, so that this is no longer than a round trip may be.
const fresh = 10 * time.Millisecond

// via is what a round trip goes by: the pool, or a connection that is kept.
type via interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// kept are the connections that a lane keeps out of the pool between round trips
// that follow each other closely. The lane's mutex guards them; there are never
// more of them, with those under way, than the lane has places.
type kept struct {
	idle     []keptConn // by answered
	answered time.Time  // the last of all answers
}

type keptConn struct {
	conn     *redis.Conn
	answered time.Time
}

// take returns a connection to use without a look at it, or nil for the pool,
// and those that go back there.
func (k *kept) take(rdb *redis.Client, now time.Time) (conn *redis.Conn, stale []keptConn) {
	if now.Sub(k.answered) >= fresh {
		stale, k.idle = k.idle, nil
		return nil, stale
	}
	n := len(k.idle)
	if n == 0 || now.Sub(k.idle[n-1].answered) >= fresh {
		stale, k.idle = k.idle, nil
		return rdb.Conn(), stale
	}
	conn, k.idle = k.idle[n-1].conn, k.idle[:n-1]
	return conn, nil
}

// put keeps a connection that has answered, nil for one of the pool.
func (k *kept) put(conn *redis.Conn, now time.Time) {
	k.answered = now
	if conn != nil {
		k.idle = append(k.idle, keptConn{conn, now})
	}
}

// toPool gives connections back, of which those that failed are closed.
func toPool(list []keptConn) {
	for _, k := range list {
		_ = k.conn.Close() // of what it says nothing is to be done
	}
}
