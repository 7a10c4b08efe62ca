package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/lock/record"
)

// Slots is the number of hash slots of a Cluster.
const Slots = 16384

// maxMasters is how many masters of one Cluster are read: Redis is made for 1,000 nodes,
// replicas among them. Each costs memory and connections.
const maxMasters = 1000

// Range is the hash slots from First to Last, both included.
type Range struct{ First, Last int }

// Master is one server that owns keys. Client belongs to the Conn and leads to
// exactly this server; it stays valid while the server is one of the target's
// masters.
type Master struct {
	Addr   string
	Client *redis.Client
	Slots  []Range // sorted; nil unless a Cluster
	// Replicas are the addresses of its replicas as a Cluster announces them; other
	// servers report theirs in INFO.
	Replicas []string
}

// Owns says whether key lives on this master.
func (m Master) Owns(key string) bool {
	if m.Slots == nil {
		return true
	}
	slot := record.Slot(key)
	for _, r := range m.Slots {
		if slot >= r.First && slot <= r.Last {
			return true
		}
	}
	return false
}

// Equal says whether o is the same server with the same slots.
func (m Master) Equal(o Master) bool {
	return m.Addr == o.Addr && slices.Equal(m.Slots, o.Slots)
}

// Uncovered returns the hash slots of a Cluster that none of masters serves;
// nothing for other deployments.
func Uncovered(masters []Master) []Range {
	var have []Range
	for _, m := range masters {
		if m.Slots == nil {
			return nil
		}
		have = append(have, m.Slots...)
	}
	slices.SortFunc(have, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var gaps []Range
	next := 0
	for _, r := range have {
		if r.First > next {
			gaps = append(gaps, Range{next, r.First - 1})
		}
		next = max(next, r.Last+1)
	}
	if next < Slots {
		gaps = append(gaps, Range{next, Slots - 1})
	}
	return gaps
}

// Masters asks the target which servers own keys now, sorted by address. For a
// standalone URL that leads to a node of a Cluster these are all masters of it.
func (c *Conn) Masters(ctx context.Context) ([]Master, error) {
	var masters []Master
	var err error
	switch c.Mode() {
	case locksteward.ModeCluster:
		masters, err = c.clusterMasters(ctx)
	case locksteward.ModeSentinel:
		masters, err = c.sentinelMaster(ctx)
	default:
		masters, err = c.standaloneMaster(ctx)
	}
	if err != nil {
		return nil, err
	}
	addrs := make([]string, 0, len(masters))
	for _, m := range masters {
		addrs = append(addrs, m.Addr)
	}
	c.setMasters(addrs)
	return masters, nil
}

// MasterFor returns the master that owns key now.
func (c *Conn) MasterFor(ctx context.Context, key string) (Master, error) {
	masters, err := c.Masters(ctx)
	if err != nil {
		return Master{}, err
	}
	for _, m := range masters {
		if m.Owns(key) {
			return m, nil
		}
	}
	return Master{}, fmt.Errorf("find master: no server serves hash slot %d", record.Slot(key))
}

func (c *Conn) standaloneMaster(ctx context.Context) ([]Master, error) {
	addr := c.spec.Addrs[0]
	client, err := c.nodeClient(addr)
	if err != nil {
		return nil, err
	}
	text, err := c.clusterInfo(ctx, client)
	if err != nil && !isUnknownOrForbidden(err) {
		return nil, fmt.Errorf("ask %s: %w", addr, err)
	}
	if strings.Contains(text, "cluster_enabled:1") {
		c.becomeCluster()
		return c.clusterMasters(ctx)
	}
	return []Master{{Addr: addr, Client: client}}, nil
}

// infoAgain is how long INFO that was refused is not asked for again: each refusal is an
// entry in the server's ACL LOG.
const infoAgain = 10 * time.Minute

// clusterInfo asks whether the server is a node of a Cluster. Where it refuses to say,
// it is asked for a sign of life alone for a while.
func (c *Conn) clusterInfo(ctx context.Context, client *redis.Client) (string, error) {
	if at := c.infoRefused.Load(); at != nil && time.Since(*at) < infoAgain {
		err := client.Ping(ctx).Err()
		if _, answered := errors.AsType[redis.Error](err); answered {
			err = nil
		}
		return "", err
	}
	text, err := client.Info(ctx, "cluster").Result()
	if isUnknownOrForbidden(err) {
		c.infoRefused.Store(new(time.Now()))
	}
	return text, err
}

// isUnknownOrForbidden says that a server answered and has no such command for
// us, as some proxies do: not a reason to give it up.
func isUnknownOrForbidden(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command")
}

// becomeCluster replaces the client of one node by one of the whole Cluster.
func (c *Conn) becomeCluster() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == locksteward.ModeCluster || c.closed {
		return
	}
	c.mode = locksteward.ModeCluster
	// The node's own client lives on in c.nodes, which Close covers.
	c.universal = c.newCluster(c.spec.Addrs)
}

func (c *Conn) clusterMasters(ctx context.Context) ([]Master, error) {
	var errs []error
	for _, addr := range c.entrances() {
		masters, err := c.askSlots(ctx, addr)
		if err == nil {
			return masters, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// entrances are the nodes of a Cluster that can be asked, those known last first.
func (c *Conn) entrances() []string {
	c.mu.Lock()
	ask := slices.Clone(c.masters)
	c.mu.Unlock()
	for _, addr := range c.spec.Addrs {
		if !slices.Contains(ask, addr) {
			ask = append(ask, addr)
		}
	}
	return ask
}

// askSlots asks one node of a Cluster for all masters.
func (c *Conn) askSlots(ctx context.Context, addr string) ([]Master, error) {
	client, err := c.nodeClient(addr)
	if err != nil {
		return nil, err
	}
	// SLOTS and not SHARDS: every version has it, and it names the port that
	// fits the connection (TLS or not).
	asked := redis.NewClusterSlotsCmd(ctx, "cluster", "slots")
	err = client.Process(ctx, asked)
	slots := asked.Val()
	if err == nil && len(slots) == 0 {
		err = errors.New("it serves no slots and knows nobody who does")
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for the cluster's slots: %w", addr, err)
	}
	return c.mastersOf(addr, slots)
}

// mastersOf groups what the node at asked says of the slots by master.
func (c *Conn) mastersOf(asked string, slots []redis.ClusterSlot) ([]Master, error) {
	byAddr := map[string]*Master{}
	for _, s := range slots {
		if len(s.Nodes) == 0 {
			continue
		}
		addr := announced(asked, s.Nodes[0].Addr)
		m, ok := byAddr[addr]
		if !ok {
			if len(byAddr) == maxMasters {
				return nil, fmt.Errorf("ask %s for the cluster's slots: it names more than %d masters, which no Cluster has", asked, maxMasters)
			}
			client, err := c.nodeClient(addr)
			if err != nil {
				return nil, err
			}
			m = &Master{Addr: addr, Client: client, Slots: []Range{}}
			byAddr[addr] = m
		}
		m.Slots = append(m.Slots, Range{s.Start, s.End})
		for _, n := range s.Nodes[1:] {
			if replica := announced(asked, n.Addr); !slices.Contains(m.Replicas, replica) {
				m.Replicas = append(m.Replicas, replica)
			}
		}
	}
	masters := make([]Master, 0, len(byAddr))
	for _, m := range byAddr {
		slices.SortFunc(m.Slots, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
		masters = append(masters, *m)
	}
	slices.SortFunc(masters, func(a, b Master) int { return cmp.Compare(a.Addr, b.Addr) })
	return masters, nil
}

// announced returns the address of a node; one without host ("", "?") is on the
// host that was asked.
func announced(asked, addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" && host != "?" {
		return addr
	}
	host, _, err = net.SplitHostPort(asked)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}

func (c *Conn) sentinelMaster(ctx context.Context) ([]Master, error) {
	var errs []error
	for _, addr := range c.spec.Addrs {
		masters, err := c.masterBySentinel(ctx, addr)
		if err == nil {
			return masters, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// masterBySentinel asks one Sentinel for the master.
func (c *Conn) masterBySentinel(ctx context.Context, addr string) ([]Master, error) {
	at, err := c.askSentinel(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("ask sentinel %s for master %q: %w", addr, c.spec.MasterName, err)
	}
	client, err := c.nodeClient(at)
	if err != nil {
		return nil, err
	}
	return []Master{{Addr: at, Client: client}}, nil
}

// errNoMaster is a Sentinel that does not know the name.
var errNoMaster = errors.New("it knows no master of that name")

// SentinelACL is what a user of the Sentinels needs for that, as rules of an ACL: the
// login, and the one question.
func SentinelACL() []string {
	return []string{"+hello", "+auth", "+client|setname", "+sentinel|get-master-addr-by-name"}
}

// askSentinel asks over a connection of its own: Sentinels are asked once a
// sweep, and an idle connection to each would only be one more thing to break.
func (c *Conn) askSentinel(ctx context.Context, addr string) (string, error) {
	sentinel := redis.NewSentinelClient(&redis.Options{
		Addr:                     addr,
		ClientName:               c.cfg.ClientName,
		Dialer:                   c.dial,
		Protocol:                 2,
		Username:                 c.cfg.SentinelUsername,
		Password:                 c.sentinelPassword().Reveal(),
		MaxRetries:               -1,
		DialTimeout:              c.cfg.DialTimeout,
		DialerRetries:            1,
		ReadTimeout:              c.cfg.ReadTimeout,
		WriteTimeout:             c.cfg.ReadTimeout,
		ContextTimeoutEnabled:    true,
		PoolSize:                 1,
		PipelinePoolSize:         -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: noMaintNotifications(),
	})
	defer context.AfterFunc(ctx, func() { _ = sentinel.Close() })() // it would wait on for an answer
	at, err := sentinel.GetMasterAddrByName(ctx, c.spec.MasterName).Result()
	closeErr := sentinel.Close()
	switch {
	case errors.Is(err, redis.Nil):
		return "", errNoMaster
	case err != nil:
		return "", err
	case closeErr != nil:
		return "", closeErr
	case len(at) != 2:
		return "", fmt.Errorf("answer has %d parts, want host and port", len(at))
	}
	return net.JoinHostPort(at[0], at[1]), nil
}
