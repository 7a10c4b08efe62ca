package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/lock"
	"github.com/locksteward/locksteward/lock/internal/backend"
	"github.com/locksteward/locksteward/lock/internal/transport"
)

// DefaultNodeTimeout is the most that a node is waited for, unless
// Options.NodeTimeout says otherwise.
const DefaultNodeTimeout = 50 * time.Millisecond

// minNodeTimeout is the least of a short lease.
const minNodeTimeout = 5 * time.Millisecond

// maxNodes is how many masters a Redlock client takes.
const maxNodes = 31

// Options tune a client of [New]. The zero value is usable.
type Options struct {
	// Options are those of [lock.New]. Votes do not share round trips: they would be late
	// together. The smallest pool of the nodes' clients bounds acquires at once, and
	// each node has that many connections, and four more. Waiters look again after 50
	// to 250 ms. Timeout is the time within which an acquire that gets no majority has
	// failed.
	lock.Options
	// NodeTimeout is how long one node is waited for in one round; an acquire has
	// two, which take Options.Timeout at most. It must cover a new connection (TCP,
	// TLS, AUTH, INFO) and one script. 1 ms to 10 s; default: a twentieth of the TTL,
	// at least 5 ms, at most 50 ms.
	NodeTimeout time.Duration
	// MinUptime is how long a node must have been up before its vote counts, for
	// acquires and renewals: a node that lost its memory in a crash must not vote
	// again before every lease that it forgot is over. Set it to the longest TTL
	// in use, on all clients: no longer one is then accepted. Needs the command
	// INFO. Default 0: nodes vote at once.
	MinUptime time.Duration
	// AllowEven accepts an even number of nodes, which survives no more failures
	// than one node less.
	AllowEven bool
}

// New returns a client that takes each lock on a majority of nodes:
// independent masters, none of which replicates another. Its methods are those
// of a client of [lock.New], with these differences: there is no queue, since the nodes
// would not agree on one, so that waiters poll, in no order, and cannot be seen
// from outside; a forced release is noticed at the next renewal; and a failed
// call may be a [*QuorumError].
//
// An odd number of 3 to 31 nodes is wanted; they must be different servers,
// which is checked by address here and by their run_id when they are connected
// to: two that are one are [lock.ErrInvalid] then, from each acquire.
//
// New sends nothing; errors are [lock.ErrInvalid], and name all that is wrong.
func New(nodes []*redis.Client, opts Options) (*lock.Client, error) {
	if err := checkNodes(nodes, opts.AllowEven); err != nil {
		return nil, fmt.Errorf("new redlock client: %w", err)
	}
	pool := slices.MinFunc(nodes, func(a, b *redis.Client) int { return cmp.Compare(a.Options().PoolSize, b.Options().PoolSize) }).Options().PoolSize
	c, err := lock.NewWithBackend(opts.Options, opts.check(), func(h backend.Host) backend.Backend {
		q := newQuorum(h, len(nodes), opts.NodeTimeout, opts.MinUptime)
		for i, rdb := range nodes {
			q.connect(q.nodes[i], rdb, pool)
		}
		return q
	})
	if err != nil {
		return nil, fmt.Errorf("new redlock client: %w", err)
	}
	return c, nil
}

// connect opens the library's own client of a node, for pool requests at once.
func (q *quorum) connect(n *node, rdb *redis.Client, pool int) {
	opt := *rdb.Options()
	n.addr = opt.Addr
	theirs := opt.OnConnect
	opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		if theirs != nil {
			if err := theirs(ctx, cn); err != nil {
				return err
			}
		}
		return q.meet(ctx, n, cn)
	}
	// A request does not wait for a dial longer than for its node; the dial may
	// take its time, for the next one.
	timeout := max(min(q.host.Timeout, time.Second), q.nodeTimeout)
	s := transport.OpenNode(&opt, transport.Options{Timeout: timeout, PoolSize: pool, MaxInFlight: pool})
	n.server = s
}

// check reports all problems of what is not in Options.
func (o *Options) check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: redlock.Options."+format, append([]any{lock.ErrInvalid}, args...)...))
	}
	if o.NodeTimeout != 0 && (o.NodeTimeout < time.Millisecond || o.NodeTimeout > 10*time.Second) {
		bad("NodeTimeout: want 1ms to 10s, or 0 for the default, got %s", o.NodeTimeout)
	}
	if o.MinUptime < 0 {
		bad("MinUptime: want 0 or more, got %s", o.MinUptime)
	}
	return errors.Join(errs...)
}

// checkNodes reports all problems of the nodes.
func checkNodes(nodes []*redis.Client, allowEven bool) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{lock.ErrInvalid}, args...)...))
	}
	switch n := len(nodes); {
	case n < 3:
		bad("nodes: want at least 3 independent masters, got %d (hint: use lock.New for one)", n)
	case n > maxNodes:
		bad("nodes: want at most %d, got %d", maxNodes, n)
	case n%2 == 0 && !allowEven:
		bad("nodes: want an odd number, got %d, which survive no more failures than %d (hint: redlock.Options.AllowEven accepts them)", n, n-1)
	}
	first := map[string]int{}
	for i, rdb := range nodes {
		if rdb == nil {
			bad("nodes[%d]: is nil", i)
			continue
		}
		if rdb.Options().Addr == "FailoverClient" {
			bad("nodes[%d]: a Sentinel client changes its server, which loses votes; give the masters themselves", i)
			continue
		}
		addr := serverAddr(rdb.Options())
		if j, seen := first[addr]; seen {
			bad("nodes[%d] (%s) and nodes[%d] (%s): are the same server", j, nodes[j].Options().Addr, i, rdb.Options().Addr)
			continue
		}
		first[addr] = i
	}
	return errors.Join(errs...)
}

// serverAddr returns the address of a server in a form that is the same for each
// way to write it. Names are not looked up.
func serverAddr(o *redis.Options) string {
	if o.Network == "unix" || strings.HasPrefix(o.Addr, "/") {
		return "unix " + filepath.Clean(o.Addr)
	}
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return "tcp " + strings.ToLower(o.Addr)
	}
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n)
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	switch host {
	case "", "127.0.0.1", "::1", "0.0.0.0", "::":
		host = "localhost"
	}
	return "tcp " + net.JoinHostPort(host, port)
}
