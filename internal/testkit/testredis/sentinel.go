package testredis

import (
	"context"
	"crypto/sha1" // Forms an id of 40 hex digits, guards nothing.
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/redisproc"
)

// SentinelMaster is the name under which the Sentinels know the master.
const SentinelMaster = "mymaster"

const sentinelTimeout = 40 * time.Second

// Sentinel is a master with one replica, watched by three Sentinels of which
// two make a quorum. A master counts as down after 500 ms.
type Sentinel struct {
	Servers   []*Server // first master, first replica
	Sentinels []*Server

	t testing.TB
}

// StartSentinel starts a Sentinel deployment that is gone at the end of the
// test. TLS is for all processes; everything else that opts say is for master
// and replica alone, so Sentinels ask for no password.
func StartSentinel(t testing.TB, opts ...Option) *Sentinel {
	t.Helper()
	need(t)
	o := collect(opts)
	if o.socket {
		t.Fatalf("start sentinel: its servers have no unix socket")
	}
	user, password := o.login()
	if password != "" {
		// The master of now may have to follow later.
		o.config = append(o.config, "masterauth "+password)
	}
	if user != "" {
		o.config = append(o.config, "masteruser "+user)
	}
	master := start(t, o)
	replica := StartReplica(t, master, WithConfig(o.config...))
	s := &Sentinel{t: t, Servers: []*Server{master, replica}}
	for range 3 {
		s.Sentinels = append(s.Sentinels, startOneSentinel(t, master))
	}
	s.await()
	return s
}

func startOneSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	dir := t.TempDir()
	user, password := master.opts.login()
	lines := []string{
		"sentinel myid " + sentinelID(dir),
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", SentinelMaster, master.proc.Port()),
		"sentinel down-after-milliseconds " + SentinelMaster + " 500",
		"sentinel failover-timeout " + SentinelMaster + " 5000",
		"sentinel parallel-syncs " + SentinelMaster + " 1",
	}
	if user != "" {
		lines = append(lines, "sentinel auth-user "+SentinelMaster+" "+user)
	}
	if password != "" {
		lines = append(lines, "sentinel auth-pass "+SentinelMaster+" "+password)
	}
	s := &Server{t: t, opts: options{tls: master.opts.tls}}
	s.launch(redisproc.Options{Dir: dir, Sentinel: true, Config: lines})
	s.hurry()
	return s
}

// sentinelID returns the 40 hex digits by which Sentinels know one another.
// Given in the configuration, it survives a restart.
func sentinelID(seed string) string {
	sum := sha1.Sum([]byte(seed))
	return hex.EncodeToString(sum[:])
}

// hurry shortens the periods at which a Sentinel asks, tells and elects, and
// keeps it from TILT: one that could not run for two seconds, since a busy disk had
// not taken its file, would do nothing for half a minute, and find no replica good
// enough afterwards. A server that cannot is merely slower.
func (s *Server) hurry() {
	client := redis.NewClient(s.Options())
	defer client.Close()
	for _, setting := range []string{
		"tilt-trigger 60000", "tilt-period 1000", "info-period 500", "ping-period 200", "ask-period 200", "publish-period 200", "election-timeout 3000",
	} {
		name, value, _ := strings.Cut(setting, " ")
		if err := client.Do(s.t.Context(), "SENTINEL", "DEBUG", name, value).Err(); err != nil {
			s.t.Logf("sentinel keeps its own %s: %v", name, err)
		}
	}
}

// await waits until each Sentinel can take part in a failover: it knows the
// others and a replica that could become master.
func (s *Sentinel) await() {
	s.t.Helper()
	master := s.Servers[0]
	for _, n := range s.Sentinels {
		client := sentinelClient(n)
		defer client.Close()
		Eventually(s.t, sentinelTimeout, func() bool {
			state, err := client.Master(s.t.Context(), SentinelMaster).Result()
			return err == nil && state["num-other-sentinels"] == "2" && state["num-slaves"] == "1" &&
				state["flags"] == "master" && state["port"] == strconv.Itoa(master.proc.Port()) &&
				s.othersReady(client)
		}, fmt.Sprintf("sentinel %s knows the others and the replica", n.Addr()))
	}
}

// othersReady reports whether the Sentinel of client has a link to its peers
// and to the replica: it votes for nobody else.
func (s *Sentinel) othersReady(client *redis.SentinelClient) bool {
	for _, call := range []func(context.Context, string) *redis.MapStringStringSliceCmd{client.Sentinels, client.Replicas} {
		list, err := call(s.t.Context(), SentinelMaster).Result()
		if err != nil || len(list) == 0 {
			return false
		}
		for _, one := range list {
			if one["flags"] != "sentinel" && (one["flags"] != "slave" || one["master-link-status"] != "ok") {
				return false
			}
		}
	}
	return true
}

func sentinelClient(n *Server) *redis.SentinelClient { return redis.NewSentinelClient(n.Options()) }

// URL returns the address as the configuration of a target wants it:
// redis+sentinel:// or rediss+sentinel://, all Sentinels, the master's name.
func (s *Sentinel) URL() string {
	scheme := "redis+sentinel://"
	if s.Servers[0].opts.tls {
		scheme = "rediss+sentinel://"
	}
	return scheme + strings.Join(s.Addrs(), ",") + "/" + SentinelMaster
}

// Addrs returns host:port of each Sentinel.
func (s *Sentinel) Addrs() []string { return addrs(s.Sentinels) }

// Options returns options for a failover client with all permissions, for the
// caller to change.
func (s *Sentinel) Options() *redis.FailoverOptions {
	o := s.Servers[0].Options()
	return &redis.FailoverOptions{
		MasterName:      SentinelMaster,
		SentinelAddrs:   s.Addrs(),
		Username:        o.Username,
		Password:        o.Password,
		TLSConfig:       o.TLSConfig,
		DisableIdentity: true,
	}
}

// Client returns a client that follows the master, with all permissions,
// closed at the end of the test.
func (s *Sentinel) Client(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewFailoverClient(s.Options()))
}

// Master returns the server that all Sentinels call the master. It waits until
// they agree.
func (s *Sentinel) Master() *Server {
	s.t.Helper()
	var master *Server
	Eventually(s.t, sentinelTimeout, func() bool {
		master = s.agreed()
		return master != nil
	}, "the sentinels agree on a master")
	return master
}

// Failover kills the master and returns when the other server is master: all
// Sentinels announce it and it takes writes. The dead one becomes a replica
// after its [Server.Restart].
func (s *Sentinel) Failover(t testing.TB) {
	t.Helper()
	old := s.Master()
	old.Kill()
	s.AwaitMasterOtherThan(t, old)
}

// AwaitMasterOtherThan returns when another server than old is master: all
// Sentinels announce it and it takes writes.
func (s *Sentinel) AwaitMasterOtherThan(t testing.TB, old *Server) {
	t.Helper()
	Eventually(t, sentinelTimeout, func() bool {
		now := s.agreed()
		return now != nil && now != old && writable(t.Context(), now)
	}, fmt.Sprintf("a master other than %s is announced and takes writes", old.Addr()))
}

// agreed returns the server that all running Sentinels name, or nil.
func (s *Sentinel) agreed() *Server {
	var said string
	for _, n := range s.Sentinels {
		select {
		case <-n.proc.Done():
			continue
		default:
		}
		client := sentinelClient(n)
		addr, err := client.GetMasterAddrByName(s.t.Context(), SentinelMaster).Result()
		if closeErr := client.Close(); err != nil || closeErr != nil || len(addr) != 2 {
			return nil
		}
		at := net.JoinHostPort(addr[0], addr[1])
		if said != "" && said != at {
			return nil
		}
		said = at
	}
	for _, server := range s.Servers {
		if server.Addr() == said {
			return server
		}
	}
	return nil
}

// writable reports whether the server is a master that takes a write.
func writable(ctx context.Context, s *Server) bool {
	client := redis.NewClient(s.Options())
	defer client.Close()
	const probe = "testredis:writable"
	if client.Set(ctx, probe, "1", time.Second).Err() != nil {
		return false
	}
	return client.Del(ctx, probe).Err() == nil
}
