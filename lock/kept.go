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

// lent is how long a connection stays out of the pool at most. When it comes back
// the pool does what is due: it ends one that is older than ConnMaxLifetime and logs in
// again with credentials that were changed.
const lent = time.Second

// via is what a round trip goes by: the pool, or a connection that is kept.
type via interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// kept are the connections that a lane keeps out of the pool between round trips
// that follow each other closely. The lane's mutex guards them; there are never
// more of them, with those under way, than the lane has places.
type kept struct {
	idle     []*keptConn // by answered
	answered time.Time   // the last of all answers
}

type keptConn struct {
	conn     *redis.Conn
	since    time.Time // out of the pool
	answered time.Time
}

// take returns a connection to use without a look at it, or nil for the pool,
// and those that go back there.
func (k *kept) take(rdb *redis.Client, now time.Time) (conn *keptConn, stale []*keptConn) {
	if now.Sub(k.answered) >= fresh {
		stale, k.idle = k.idle, nil
		return nil, stale
	}
	n := len(k.idle)
	if n == 0 || now.Sub(k.idle[n-1].answered) >= fresh {
		stale, k.idle = k.idle, nil
		return &keptConn{conn: rdb.Conn(), since: now}, stale
	}
	conn, k.idle = k.idle[n-1], k.idle[:n-1]
	if now.Sub(conn.since) >= lent {
		return &keptConn{conn: rdb.Conn(), since: now}, []*keptConn{conn}
	}
	return conn, nil
}

// put keeps a connection that has answered, nil for one of the pool.
func (k *kept) put(conn *keptConn, now time.Time) {
	k.answered = now
	if conn != nil {
		conn.answered = now
		k.idle = append(k.idle, conn)
	}
}

// toPool gives connections back, of which those that failed are closed.
func toPool(list []*keptConn) {
	for _, k := range list {
		_ = k.conn.Close() // of what it says nothing is to be done
	}
}
