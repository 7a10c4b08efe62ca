package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// errOnce is a second dial of a connection that must not be replaced unnoticed.
var errOnce = errors.New("the dedicated connection ended")

// Dedicated returns a client of the server at addr with one connection that is
// dialled once: when it breaks, every further call fails instead of going on
// with another connection in another state. With the end of ctx the connection is cut
// off, even while a request waits for an answer there: go-redis itself would wait on. suffix is added
// to the name that CLIENT LIST shows; ready, which may be nil, runs on the connection
// before anything else. It does no I/O. The client is the caller's to close, and ctx to
// end; closing c leaves it open.
func (c *Conn) Dedicated(ctx context.Context, addr, suffix string, ready func(context.Context, *redis.Conn) error) *redis.Client {
	return c.dedicated(ctx, addr, suffix, ready, func(raw net.Conn) net.Conn { return raw }, func(cn net.Conn, server string) net.Conn {
		return respcheck.New(cn, server, respcheck.MaxBytes)
	})
}

// Subscriber is [Conn.Dedicated] for a connection on which the server reports
// changes. What comes while the connection is busy is read up to 10 ms later: that
// spares the server a wake-up of this process with each change. The message of a flush
// has an empty PayloadSlice.
func (c *Conn) Subscriber(ctx context.Context, addr, suffix string, ready func(context.Context, *redis.Conn) error) *redis.Client {
	return c.dedicated(ctx, addr, suffix, ready, newSampled, respcheck.NewSubscriber)
}

func (c *Conn) dedicated(
	ctx context.Context, addr, suffix string, ready func(context.Context, *redis.Conn) error,
	over func(net.Conn) net.Conn, checked func(cn net.Conn, server string) net.Conn,
) *redis.Client {
	opts := c.nodeOptions(addr)
	opts.ClientName += suffix
	// As many failed dials as the pool is large would have go-redis dial on in the
	// background.
	opts.PoolSize, opts.MaxActiveConns = 64, 1
	opts.MaxRetries = -1
	opts.ConnMaxIdleTime, opts.ConnMaxLifetime = -1, -1
	var dialled atomic.Bool
	var unready atomic.Pointer[error] // why the connection could not be used
	opts.Dialer = func(dialing context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			// A subscriber does not learn why it failed, and dials again at once.
			if why := unready.Load(); why != nil {
				return nil, fmt.Errorf("%w: %w", errOnce, *why)
			}
			return nil, errOnce
		}
		cn, err := c.renewing(c.dialOver(dialing, network, addr, over))
		if err != nil {
			return nil, err
		}
		// It may be closed already: there is nobody to tell.
		context.AfterFunc(ctx, func() { _ = cn.Close() })
		return checked(cn, addr), nil
	}
	opts.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		err := c.leaveNoTrace(ctx, cn)
		if err == nil && ready != nil {
			err = ready(ctx, cn)
		}
		if err != nil {
			unready.Store(&err)
		}
		return err
	}
	return newClient(opts)
}
