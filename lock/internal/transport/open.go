package transport

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// Options bound the connections of a [Server].
type Options struct {
	// Timeout is how long one round trip may take.
	Timeout time.Duration
	// PoolSize is how many connections to one node acquires and releases have, 0 for as
	// many as the given client; some more are kept for what keeps locks alive.
	PoolSize int
	// MaxInFlight is how many round trips of shared requests to one node are under way at
	// once; 0 is the default.
	MaxInFlight int
}

// reserved is how many connections renewals, heartbeats and waiters that leave the
// queue have for themselves. Releases have none: they share those of acquires.
const reserved = 4

// maxInFlight is the default of Options.MaxInFlight: while some replies are read, the
// next requests are executed. With more of them fewer requests share a round trip, which
// costs client and server more each; see bench/RESULTS.md.
const maxInFlight = 4

// resp2 is the protocol of all connections: with RESP3 go-redis looks for pushes before each reply, and there
// are none.
const resp2 = 2

// Open returns connections with the options of rdb, a *redis.Client or a
// *redis.ClusterClient; the error says that it is something else. A failover client's
// dialer comes along, so that new connections find the new master. It sends nothing.
func Open(rdb redis.UniversalClient, o Options) (*Server, error) {
	if r, ok := rdb.(*redis.Client); ok && r != nil {
		opt := *r.Options()
		return OpenNode(&opt, o), nil
	}
	r, ok := rdb.(*redis.ClusterClient)
	if !ok || r == nil {
		return nil, fmt.Errorf("want a *redis.Client or *redis.ClusterClient that is not nil, got %T "+
			"(hint: a *redis.Ring would lose locks when a shard is away, since it moves their keys)", rdb)
	}
	opt := *r.Options()
	o.PoolSize = cmp.Or(o.PoolSize, opt.PoolSize)
	opt.ReadOnly, opt.RouteByLatency, opt.RouteRandomly = false, false, false
	opt.MaxRetries, opt.Protocol = -1, resp2
	opt.ContextTimeoutEnabled = true
	opt.DialTimeout, opt.DialerRetries = o.dialTimeout(opt.DialTimeout), 1
	opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = o.Timeout, o.Timeout, o.Timeout
	opt.PoolSize, opt.MaxActiveConns, opt.MinIdleConns, opt.MaxConcurrentDials = o.PoolSize+reserved, 0, 0, 0
	opt.PipelinePoolSize, opt.AutoPipelineOptions = -1, nil
	opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, noMaintenance()
	opt.NewClient = checkedNode(opt.NewClient)
	c := redis.NewClusterClient(&opt)
	return &Server{rdb: c, cluster: c, maxInFlight: o.inFlight(), timeout: o.Timeout}, nil
}

// OpenNode is [Open] for one server; opt is changed.
func OpenNode(opt *redis.Options, o Options) *Server {
	o.PoolSize = cmp.Or(o.PoolSize, opt.PoolSize)
	opt.Limiter = nil
	opt.MaxRetries, opt.Protocol = -1, resp2
	opt.ContextTimeoutEnabled = true
	opt.DialTimeout, opt.DialerRetries = o.dialTimeout(opt.DialTimeout), 1
	opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = o.Timeout, o.Timeout, o.Timeout
	opt.PoolSize, opt.MaxActiveConns, opt.MinIdleConns, opt.MaxConcurrentDials = o.PoolSize+reserved, 0, 0, 0
	opt.PipelinePoolSize, opt.AutoPipelineOptions = -1, nil
	opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, noMaintenance()
	opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil
	opt.ClientSideCacheRefreshOnInvalidate = false
	checkReplies(opt)
	c := redis.NewClient(opt)
	c.AddHook(pipelineErrors{})
	return &Server{rdb: c, single: c, maxInFlight: o.inFlight(), timeout: o.Timeout}
}

func (o Options) inFlight() int {
	if o.MaxInFlight > 0 {
		return o.MaxInFlight
	}
	return min(o.PoolSize, maxInFlight)
}

// dialTimeout is how long a connection may take to make, for a caller who says d.
func (o Options) dialTimeout(d time.Duration) time.Duration {
	if d <= 0 {
		return o.Timeout
	}
	return min(d, o.Timeout)
}

func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// maxReply bounds a reply: those of the scripts have some hundred bytes, those of a large
// Cluster about its slots some hundred KiB, and many connections may have one at once.
const maxReply = 4 << 20

// checkReplies bounds what the servers may send that connections of opt lead to: a reply
// that is not what it says would end the process.
func checkReplies(opt *redis.Options) {
	dial := opt.Dialer
	if dial == nil {
		dial = redis.NewDialer(opt)
	}
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return respcheck.New(cn, addr, maxReply), nil
	}
}

// checkedNode is checkReplies for the nodes of a Cluster, whose clients open makes.
func checkedNode(open func(*redis.Options) *redis.Client) func(*redis.Options) *redis.Client {
	if open == nil {
		open = redis.NewClient
	}
	return func(opt *redis.Options) *redis.Client {
		checkReplies(opt)
		c := open(opt)
		c.AddHook(pipelineErrors{})
		return c
	}
}
