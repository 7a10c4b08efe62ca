package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/lock"
)

// A server that only reads is asked again with pauses, not in a storm, and the
// lock can be had once it is a master.
// fault: 33
func TestReadOnlyIsNoStorm(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{Timeout: 2 * time.Second})
	mustRelease(t, mustAcquire(t, b.client, "warm", lease()))
	if err := b.rdb.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	commands := func() int {
		return infoInt(t, b.rdb.Info(t.Context(), "stats").Val(), "total_commands_processed")
	}
	before, began := commands(), time.Now()
	_, err := b.client.TryAcquire(t.Context(), "k", lease())
	took := time.Since(began)
	wantCode(t, err, lock.CodeUnavailable, "READONLY")
	// Fifty a second, and the two questions of this test.
	if n := commands() - before; float64(n) > 50*took.Seconds()+10 {
		t.Errorf("%d commands in %s", n, took)
	}
	if err := b.rdb.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, mustAcquire(t, b.client, "k", lease()))
}

// A master that is made a replica while it runs is left for the new one, by a client
// that goes on asking, and is not stormed meanwhile.
// fault: 33
func TestDemotedMasterIsLeft(t *testing.T) {
	t.Parallel()
	testredis.Since(t, 6, 2, "INFO errorstats")
	ctx := t.Context()
	sentinel := testredis.StartSentinel(t)
	c := open(t, sentinel.Client(t), lock.Options{})
	mustRelease(t, mustAcquire(t, c, "k", lease()))
	old := sentinel.Master()
	watcher := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addrs()[0]})
	t.Cleanup(func() { _ = watcher.Close() })
	began := time.Now()
	if err := watcher.Failover(ctx, testredis.SentinelMaster).Err(); err != nil {
		t.Fatal(err)
	}
	there := old.Client(t)
	takes := func() bool {
		h, err := c.TryAcquire(ctx, "k", lease())
		return err == nil && h.Release(ctx) == nil
	}
	testredis.Eventually(t, 60*time.Second, func() bool {
		_ = takes() // at whichever is the master, or none
		return strings.Contains(there.Info(ctx, "replication").Val(), "role:slave")
	}, "the old master is a replica")
	testredis.Eventually(t, 60*time.Second, takes, "no lock of the new master")
	refused := 0
	if _, rest, ok := strings.Cut(there.Info(ctx, "errorstats").Val(), "errorstat_READONLY:count="); ok {
		_, _ = fmt.Sscan(rest, &refused)
	}
	if took := time.Since(began); float64(refused) > 50*took.Seconds()+10 {
		t.Errorf("%d writes refused in %s", refused, took)
	}
}

// A script of somebody else blocks the server: a typed error within the time
// given, the hold that stands is kept, and the script is left alone.
// fault: 40
func TestBusyServer(t *testing.T) {
	t.Parallel()
	b := setup(t, lock.Options{Timeout: 800 * time.Millisecond}, testredis.WithConfig("lua-time-limit 10"))
	h := mustAcquire(t, b.client, "held", lock.Lease{TTL: 6 * time.Second, RenewFraction: 0.1})
	o := b.srv.Options()
	o.ReadTimeout, o.MaxRetries = 30*time.Second, -1
	patient := redis.NewClient(o)
	t.Cleanup(func() { _ = patient.Close() })
	ended := make(chan error, 1)
	go func() {
		const script = "local t = redis.call('time'); local e = t[1] * 1000 + t[2] / 1000 + 2500; " +
			"repeat t = redis.call('time') until t[1] * 1000 + t[2] / 1000 > e; return 1"
		ended <- patient.Eval(context.Background(), script, nil).Err()
	}()
	testredis.Eventually(t, 5*time.Second, func() bool {
		err := b.rdb.Get(context.Background(), "x").Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	}, "the server is busy")
	began := time.Now()
	_, err := b.client.TryAcquire(t.Context(), "k", lease())
	if reply := wantCode(t, err, lock.CodeUnavailable, "BUSY"); !reply.Temporary() {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	if err := <-ended; err != nil {
		t.Errorf("the script: %v", err)
	}
	if stats := b.rdb.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "script|kill") {
		t.Error("somebody has sent SCRIPT KILL")
	}
	until := func() time.Time { return time.Now().Add(h.Validity()) }
	before := until()
	testredis.Eventually(t, 5*time.Second, func() bool { return until().After(before.Add(100 * time.Millisecond)) }, "renewed afterwards")
	mustRelease(t, h)
	mustRelease(t, mustAcquire(t, b.client, "k", lease()))
}
