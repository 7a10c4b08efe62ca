package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/respcheck"
)

// maxRetries is how often go-redis repeats a command on a broken connection.
// One is enough for a pooled connection that died while idle; more would only
// delay the word that a server is away.
const maxRetries = 1

// forgetAfter is how long a client of a server that is no longer a master is
// kept: who still uses it must not see it closed at once.
const forgetAfter = 10 * time.Minute

// Conn is an open target. See [Open].
type Conn struct {
	cfg   Config
	spec  Spec
	creds *credentials
	ends  ends

	noTouchRefused atomic.Bool
	infoRefused    atomic.Pointer[time.Time] // when INFO was refused last; nil: never

	mu        sync.Mutex
	closed    bool
	mode      locksteward.Mode // standalone becomes cluster when the server says so
	universal redis.UniversalClient
	nodes     map[string]*node // by address
	masters   []string         // last known, asked first

	// used is the state of the files that is known to those who wait, renewed is
	// closed when it changes, retired are clients that were replaced by then.
	used     uint64
	renewed  chan struct{}
	sentinel uint64 // the state of the Sentinels' password that universal has
	retired  []redis.UniversalClient
}

// node is one server's own client.
type node struct {
	client *redis.Client
	used   time.Time
}

// Open prepares a connection to the target of cfg, without any I/O: errors are
// about cfg alone (all problems at once). The caller closes it.
func Open(cfg Config) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	spec, err := Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Username == "" {
		cfg.Username = spec.Username
	}
	if cfg.Password == "" {
		cfg.Password = spec.Password
	}
	creds, err := cfg.open()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		cfg: cfg, spec: spec, creds: creds, mode: spec.Mode, nodes: map[string]*node{},
		used: creds.generation(), renewed: make(chan struct{}),
	}
	switch spec.Mode {
	case locksteward.ModeCluster:
		c.universal = c.newCluster(spec.Addrs)
	case locksteward.ModeSentinel:
		c.universal = c.newFailover()
	default:
		c.universal = c.newNode(spec.Addrs[0])
	}
	return c, nil
}

// Mode returns how the target is deployed, as far as it is known: a standalone
// URL that leads to one node of a Cluster counts as a Cluster once
// [Conn.Masters] has asked it.
func (c *Conn) Mode() locksteward.Mode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode
}

// DB returns the logical database, 0 on a Cluster.
func (c *Conn) DB() int {
	if c.Mode() == locksteward.ModeCluster {
		return 0
	}
	return c.spec.DB
}

// Username returns the user that is logged in with, "" for the default one.
func (c *Conn) Username() string { return c.cfg.Username }

// Spec returns the target's URL, taken apart.
func (c *Conn) Spec() Spec { return c.spec }

// Universal returns the client that finds the right server by itself: the
// server's own, the failover client or the Cluster client. It belongs to the
// Conn; it may be another one after [Conn.Masters] found a Cluster behind a
// standalone URL, so callers ask anew for each piece of work.
func (c *Conn) Universal() redis.UniversalClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewFailover()
	return c.universal
}

// Close closes all connections. Commands in flight fail.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	errs := []error{c.universal.Close()}
	for _, old := range c.retired {
		errs = append(errs, old.Close())
	}
	for _, n := range c.nodes {
		// The universal client of a standalone target is a node's own.
		if err := n.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close %s: %w", c.spec, err)
	}
	return nil
}

// Node returns the client of one server of the target, such as a replica, at the
// address by which the others know it. It belongs to the Conn, as that of a [Master].
func (c *Conn) Node(addr string) (*redis.Client, error) { return c.nodeClient(addr) }

// nodeClient returns the client of the server at addr, always the same one.
func (c *Conn) nodeClient(addr string) (*redis.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, redis.ErrClosed
	}
	n, ok := c.nodes[addr]
	if !ok {
		if own, is := c.universal.(*redis.Client); is && c.mode == locksteward.ModeStandalone && addr == c.spec.Addrs[0] {
			n = &node{client: own}
		} else {
			n = &node{client: c.newNode(addr)}
		}
		c.nodes[addr] = n
	}
	n.used = time.Now()
	return n.client, nil
}

// setMasters remembers the masters and closes clients unused for long.
func (c *Conn) setMasters(addrs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.masters = addrs
	for addr, n := range c.nodes {
		if time.Since(n.used) > forgetAfter && !slices.Contains(addrs, addr) && !slices.Contains(c.spec.Addrs, addr) {
			// Nobody uses it: its close error would tell nobody anything.
			_ = n.client.Close()
			delete(c.nodes, addr)
		}
	}
}

// dial connects to addr, or to where AddrMap leads, with TLS if the URL says so. What
// the server sends is bounded.
func (c *Conn) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	cn, err := c.dialOver(ctx, network, addr, func(raw net.Conn) net.Conn { return raw })
	if err != nil {
		return nil, err
	}
	return respcheck.New(cn, addr, respcheck.MaxBytes), nil
}

// dialOver is dial, with what over makes of the connection beneath TLS.
func (c *Conn) dialOver(ctx context.Context, network, addr string, over func(net.Conn) net.Conn) (net.Conn, error) {
	if to, ok := c.cfg.AddrMap[addr]; ok {
		addr = to
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	dialer := &net.Dialer{KeepAlive: 15 * time.Second}
	raw, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	raw = over(raw)
	if !c.spec.TLS || network == "unix" {
		return raw, nil
	}
	return c.handshake(ctx, raw, addr)
}

func (c *Conn) newNode(addr string) *redis.Client { return newClient(c.nodeOptions(addr)) }

// newClient returns a client of one server.
func newClient(opts *redis.Options) *redis.Client {
	client := redis.NewClient(opts)
	client.AddHook(pipelineErrors{})
	return client
}

func (c *Conn) nodeOptions(addr string) *redis.Options {
	opts := &redis.Options{
		Addr:                     addr,
		ClientName:               c.cfg.ClientName,
		Dialer:                   c.dial,
		OnConnect:                c.leaveNoTrace,
		Protocol:                 2, // pushes are the watch's own connections' business
		MaxRetries:               maxRetries,
		DialTimeout:              c.cfg.DialTimeout,
		DialerRetries:            1,
		ReadTimeout:              c.cfg.ReadTimeout,
		WriteTimeout:             c.cfg.ReadTimeout,
		ContextTimeoutEnabled:    true,
		PoolTimeout:              c.cfg.ReadTimeout,
		PoolSize:                 c.cfg.PoolSize,
		MaxActiveConns:           c.cfg.PoolSize,
		PipelinePoolSize:         -1,
		ConnMaxLifetime:          c.lifetime(),
		DisableIdentity:          true, // not in the least ACL, and CLIENT SETNAME says who we are
		MaintNotificationsConfig: noMaintNotifications(),

		CredentialsProviderContext: c.login,
	}
	if c.spec.Socket && addr == c.spec.Addrs[0] {
		opts.Network = "unix"
	}
	if c.spec.Mode != locksteward.ModeCluster {
		opts.DB = c.spec.DB
	}
	return opts
}

func (c *Conn) newCluster(addrs []string) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                    slices.Clone(addrs),
		ClientName:               c.cfg.ClientName,
		Dialer:                   c.dial,
		OnConnect:                c.leaveNoTrace,
		Protocol:                 2,
		MaxRetries:               maxRetries,
		DialTimeout:              c.cfg.DialTimeout,
		DialerRetries:            1,
		ReadTimeout:              c.cfg.ReadTimeout,
		WriteTimeout:             c.cfg.ReadTimeout,
		ContextTimeoutEnabled:    true,
		PoolTimeout:              c.cfg.ReadTimeout,
		PoolSize:                 c.cfg.PoolSize,
		MaxActiveConns:           c.cfg.PoolSize,
		PipelinePoolSize:         -1,
		ConnMaxLifetime:          c.lifetime(),
		DisableIdentity:          true,
		MaintNotificationsConfig: noMaintNotifications(),
		NewClient:                newClient,

		CredentialsProviderContext: c.login,
	})
}

func (c *Conn) newFailover() *redis.Client {
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            c.spec.MasterName,
		SentinelAddrs:         c.spec.Addrs,
		SentinelUsername:      c.cfg.SentinelUsername,
		SentinelPassword:      c.sentinelPassword().Reveal(),
		ClientName:            c.cfg.ClientName,
		Dialer:                c.dial,
		Protocol:              2,
		DB:                    c.spec.DB,
		MaxRetries:            maxRetries,
		DialTimeout:           c.cfg.DialTimeout,
		DialerRetries:         1,
		ReadTimeout:           c.cfg.ReadTimeout,
		WriteTimeout:          c.cfg.ReadTimeout,
		ContextTimeoutEnabled: true,
		PoolTimeout:           c.cfg.ReadTimeout,
		PoolSize:              c.cfg.PoolSize,
		MaxActiveConns:        c.cfg.PoolSize,
		PipelinePoolSize:      -1,
		ConnMaxLifetime:       c.lifetime(),
		DisableIdentity:       true,

		CredentialsProviderContext: c.login,
	})
	client.AddHook(pipelineErrors{})
	return client
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
