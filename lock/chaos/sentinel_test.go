package chaos_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// sentinelNemeses break a master with one replica and three Sentinels.
var sentinelNemeses = []nemesis{
	{name: "sentinel failover", topology: "sentinel", damage: restores, strays: true, times: 1, strike: sentinelFailover},
	{name: "sentinel split", topology: "sentinel", damage: restores, strays: true, times: 1, strike: sentinelSplit},
}

func newSentinel(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.sentinel = testredis.StartSentinel(t)
	o := b.sentinel.Options()
	o.ReadTimeout, o.MaxRetries = 20*time.Second, 10
	admin := redis.NewFailoverClient(o)
	t.Cleanup(func() { _ = admin.Close() })
	b.admin, b.dial = admin, []redis.UniversalClient{b.sentinel.Client(t), b.sentinel.Client(t)}
	return b
}

// other returns the server that is not master.
func (b *bed) other(master *testredis.Server) *testredis.Server {
	for _, s := range b.sentinel.Servers {
		if s != master {
			return s
		}
	}
	b.t.Fatal("no other server")
	return nil
}

// sentinelFailover kills the master when the replica has not heard of the last
// locks.
func sentinelFailover(b *bed) {
	old := b.sentinel.Master()
	heir := b.other(old)
	b.sever(old, heir)
	pause(leaseTTL / 2)
	b.elect(old, heir)
	old.Restart()
	b.demoted(old)
}

// reconcile lets a server follow again that may have written down the password
// of an earlier sever.
func (b *bed) reconcile(s *testredis.Server) {
	b.t.Helper()
	b.on(s, "CONFIG", "SET", "masterauth", "")
}

// elect kills the master and waits for the replica to be announced.
func (b *bed) elect(old, heir *testredis.Server) {
	old.Kill()
	b.sentinel.AwaitMasterOtherThan(b.t, old)
	b.reconcile(heir)
}

// sentinelSplit lets the old master run on beside the new one until the
// Sentinels make it a replica.
func sentinelSplit(b *bed) {
	old := b.sentinel.Master()
	old.Pause()
	b.sentinel.AwaitMasterOtherThan(b.t, old)
	old.Resume()
	b.demoted(old)
}

// demoted waits until the old master, which runs again, is a replica.
func (b *bed) demoted(old *testredis.Server) {
	b.t.Helper()
	b.reconcile(old)
	testredis.Eventually(b.t, 30*time.Second, func() bool {
		return strings.Contains(fmt.Sprint(b.on(old, "INFO", "replication")), "master_link_status:up")
	}, "the old master follows the new one")
}

// Fault 31: the master dies with locks that its replica has never heard of.
// fault: 31
func TestSentinelFailover(t *testing.T) {
	storm(t, named("sentinel failover"))
}

// Fault 32: the old master comes back as one, until it is told.
// fault: 32
func TestSentinelSplit(t *testing.T) {
	storm(t, named("sentinel split"))
}
