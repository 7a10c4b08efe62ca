package lock

import (
	"context"
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by it.
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/locksteward/locksteward/internal/respcheck"
)

// script is one Lua script and the name that servers cache it under.
type script struct {
	op, text, sha string
	// rides says that it may share a round trip with others. What keeps locks
	// alive does not wait for that.
	rides bool
}

func newScript(op, text string) *script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // As above.
	return &script{op: op, text: text, sha: hex.EncodeToString(sum[:])}
}

func (s *script) riding() *script {
	s.rides = true
	return s
}

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed renew.lua
	renewText string
	//go:embed release.lua
	releaseText string
	//go:embed beat.lua
	beatText string
	//go:embed leave.lua
	leaveText string

	acquireScript = newScript("acquire", acquireText).riding()
	renewScript   = newScript("renew", renewText)
	releaseScript = newScript("release", releaseText).riding()
	beatScript    = newScript("heartbeat", beatText)
	leaveScript   = newScript("leave", leaveText)
)

// evaler runs one script in one round trip.
type evaler interface {
	eval(ctx context.Context, s *script, keys []string, args []any) (any, error)
}

// server is the library's own connection to Redis.
type server struct {
	rdb redis.UniversalClient
	// cluster has the slots spread over nodes, so that channels are sharded too
	// where the server has that.
	cluster *redis.ClusterClient
	single  *redis.Client
	stale   atomic.Int64 // when the map of slots was last asked for anew, ns since 1970

	abreast int // round trips to one node at once
	timeout time.Duration
	lanes   sync.Map // by *redis.Client of the node: *lane
}

// eval names the script by its hash and sends it in full, once, to a server that
// does not know it.
func (s *server) eval(ctx context.Context, sc *script, keys []string, args []any) (any, error) {
	v, err := s.call(ctx, sc, "evalsha", &sc.sha, keys, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		v, err = s.call(ctx, sc, "eval", &sc.text, keys, args)
	}
	s.doubt(ctx, err)
	return v, err
}

// reloadEvery is how often the map of slots is asked for anew at most.
const reloadEvery = 200 * time.Millisecond

// doubt asks for the map of slots anew when a node did not answer: go-redis does
// that by itself only when a node says that the slot is elsewhere, and a dead
// one says nothing.
func (s *server) doubt(ctx context.Context, err error) {
	if s.cluster == nil || err == nil {
		return
	}
	if _, reply := errors.AsType[redis.Error](err); reply {
		return
	}
	now, last := time.Now().UnixNano(), s.stale.Load()
	if now-last > int64(reloadEvery) && s.stale.CompareAndSwap(last, now) {
		s.cluster.ReloadState(ctx)
	}
}

// command makes one command, whose arguments are appended to none. The strings are
// pointed at, not copied: they must not change any more.
func command(ctx context.Context, none []any, name any, script *string, keys []string, args []any) *redis.Cmd {
	all := append(none, name, script, len(keys))
	for i := range keys {
		all = append(all, &keys[i])
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// spare is memory for the arguments of commands.
var spare = sync.Pool{New: func() any { return new([]any) }}

// call sends one command.
func (s *server) call(ctx context.Context, sc *script, name any, text *string, keys []string, args []any) (any, error) {
	list := spare.Get().(*[]any)
	cmd := command(ctx, *list, name, text, keys, args)
	var err error
	if sc.rides {
		err = s.ride(ctx, keys[0], cmd, sc == releaseScript)
		if err != nil && s.cluster != nil && elsewhere(err) {
			// The client of the Cluster follows to where the slot is now.
			cmd = command(ctx, nil, name, text, keys, args)
			err = s.rdb.Process(ctx, cmd)
		}
	} else {
		err = s.rdb.Process(ctx, cmd)
	}
	if err != nil {
		return nil, err // a command that was given up may still be read
	}
	*list = cmd.Args()
	clear(*list)
	*list = (*list)[:0]
	spare.Put(list)
	return cmd.Val(), nil
}

// laneOf returns the lane to a node.
func (s *server) laneOf(node *redis.Client) *lane {
	l, known := s.lanes.Load(node)
	if !known {
		l, _ = s.lanes.LoadOrStore(node, &lane{rdb: node, abreast: s.abreast, timeout: s.timeout})
	}
	return l.(*lane)
}

// elsewhere says that a command was not executed because its slot is elsewhere,
// or on its way, or the node has left the Cluster.
func elsewhere(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") ||
		redis.HasErrorPrefix(err, "TRYAGAIN") || errors.Is(err, redis.ErrClosed)
}

// ride sends a command by the lane to the node that has key.
func (s *server) ride(ctx context.Context, key string, cmd *redis.Cmd, urgent bool) error {
	node, err := s.node(ctx, key)
	if err != nil {
		return err
	}
	return s.laneOf(node).process(ctx, cmd, urgent)
}

// close waits for what is under way and closes the connections.
func (s *server) close() error {
	s.lanes.Range(func(_, l any) bool {
		l.(*lane).close()
		return true
	})
	return s.rdb.Close()
}

// node returns the client of the master that a key or channel belongs to.
func (s *server) node(ctx context.Context, key string) (*redis.Client, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	return s.cluster.MasterForKey(ctx, key)
}

// poolSize returns the size of the pool of a client that [New] accepts.
func poolSize(rdb redis.UniversalClient) (int, error) {
	switch r := rdb.(type) {
	case nil:
		return 0, fmt.Errorf("%w: client: is nil", ErrInvalid)
	case *redis.Client:
		if r == nil {
			return 0, fmt.Errorf("%w: client: is nil", ErrInvalid)
		}
		return r.Options().PoolSize, nil
	case *redis.ClusterClient:
		if r == nil {
			return 0, fmt.Errorf("%w: client: is nil", ErrInvalid)
		}
		return r.Options().PoolSize, nil
	case *redis.Ring:
		return 0, fmt.Errorf("%w: client: a *redis.Ring loses locks when a shard is away, since it moves their keys; use a single server, Sentinel or Cluster", ErrInvalid)
	default:
		return 0, fmt.Errorf("%w: client: want *redis.Client or *redis.ClusterClient, got %T", ErrInvalid, rdb)
	}
}

// derive opens the library's own client from the caller's options. Requests are
// never repeated by it: the library knows which ones may be. A failover client's
// dialer comes along, so that new connections find the new master.
func derive(rdb redis.UniversalClient, o Options) (*server, error) {
	if r, ok := rdb.(*redis.ClusterClient); ok {
		opt := *r.Options()
		opt.ReadOnly, opt.RouteByLatency, opt.RouteRandomly = false, false, false
		opt.MaxRetries, opt.Protocol = -1, resp2
		opt.ContextTimeoutEnabled = true
		opt.DialTimeout, opt.DialerRetries = o.dialTimeout(opt.DialTimeout), 1
		opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = o.Timeout, o.Timeout, o.Timeout
		opt.PoolSize, opt.MaxActiveConns, opt.MinIdleConns, opt.MaxConcurrentDials = o.PoolSize+reserved, 0, 0, 0
		opt.PipelinePoolSize, opt.AutoPipelineOptions = -1, nil
		opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, quiet()
		opt.NewClient = checkedNode(opt.NewClient)
		c := redis.NewClusterClient(&opt)
		return &server{rdb: c, cluster: c, abreast: min(o.PoolSize, shared), timeout: o.Timeout}, nil
	}
	opt := *rdb.(*redis.Client).Options()
	return deriveSingle(&opt, o)
}

// deriveSingle opens the client of one server; opt is changed.
func deriveSingle(opt *redis.Options, o Options) (*server, error) {
	opt.Limiter = nil
	opt.MaxRetries, opt.Protocol = -1, resp2
	opt.ContextTimeoutEnabled = true
	opt.DialTimeout, opt.DialerRetries = o.dialTimeout(opt.DialTimeout), 1
	opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = o.Timeout, o.Timeout, o.Timeout
	opt.PoolSize, opt.MaxActiveConns, opt.MinIdleConns, opt.MaxConcurrentDials = o.PoolSize+reserved, 0, 0, 0
	opt.PipelinePoolSize, opt.AutoPipelineOptions = -1, nil
	opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, quiet()
	opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil
	opt.ClientSideCacheRefreshOnInvalidate = false
	check(opt)
	c := redis.NewClient(opt)
	c.AddHook(pipelineErrors{})
	return &server{rdb: c, single: c, abreast: min(o.PoolSize, shared), timeout: o.Timeout}, nil
}

// maxReply bounds a reply: those of the scripts have some hundred bytes, those of a large
// Cluster about its slots some hundred KiB, and many connections may have one at once.
const maxReply = 4 << 20

// check bounds what the servers may send that connections of opt lead to: a reply that
// is not what it says would end the process.
func check(opt *redis.Options) {
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

// checkedNode is check for the nodes of a Cluster, whose clients open makes.
func checkedNode(open func(*redis.Options) *redis.Client) func(*redis.Options) *redis.Client {
	if open == nil {
		open = redis.NewClient
	}
	return func(opt *redis.Options) *redis.Client {
		check(opt)
		c := open(opt)
		c.AddHook(pipelineErrors{})
		return c
	}
}

// resp2 is the protocol of all connections: with RESP3 go-redis looks for pushes before each reply, and there
// are none.
const resp2 = 2

// dialTimeout is how long a connection may take to make, for a caller who says d.
func (o Options) dialTimeout(d time.Duration) time.Duration {
	if d <= 0 {
		return o.Timeout
	}
	return min(d, o.Timeout)
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
