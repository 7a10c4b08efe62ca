package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward/internal/testkit/testredis"
)

// serverNemeses break a standalone server, but not its data.
var serverNemeses = []nemesis{
	{name: "script flush", topology: "single", strike: scriptFlush},
	{name: "client pause", topology: "single", strays: true, strike: clientPause},
	{name: "debug sleep", topology: "single", strays: true, strike: debugSleep},
	{name: "frozen server", topology: "single", strays: true, strike: freezeServer},
	{name: "out of memory", topology: "single", strike: outOfMemory},
	{name: "read only", topology: "single", strike: readOnly},
	{name: "loading", topology: "single", strays: true, strike: loading},
	{name: "misconf", topology: "single", prepare: prepareMisconf, strike: misconf},
	{name: "no replicas", topology: "single", strike: noReplicas},
	{name: "killed connections", topology: "single", strays: true, strike: killConnections},
	// A hold whose holder could not reach the server in time has no end here.
	{name: "persist", topology: "single", timeout: busyTimeout, strike: persistLocks},
}

// named returns the nemesis of that name.
func named(name string) nemesis {
	for _, n := range allNemeses() {
		if n.name == name {
			return n
		}
	}
	panic("no nemesis " + name)
}

func scriptFlush(b *bed) {
	for range 100 {
		b.do("SCRIPT", "FLUSH")
		pause(5 * time.Millisecond)
	}
}

func clientPause(b *bed) {
	for _, what := range []string{"WRITE", "ALL"} {
		for _, d := range []time.Duration{leaseTTL / 4, longerThanLease} {
			b.do("CLIENT", "PAUSE", d.Milliseconds(), what)
			pause(d)
		}
	}
}

func debugSleep(b *bed) {
	b.do("DEBUG", "SLEEP", "0.2")
	pause(50 * time.Millisecond)
	b.do("DEBUG", "SLEEP", fmt.Sprint(longerThanLease.Seconds()))
}

func freezeServer(b *bed) {
	for _, d := range []time.Duration{leaseTTL / 4, longerThanLease} {
		b.srv.Pause()
		pause(d)
		b.srv.Resume()
		pause(50 * time.Millisecond)
	}
}

func outOfMemory(b *bed) {
	b.set("maxmemory-policy", "noeviction", "maxmemory", 1)
	pause(longerThanLease)
	b.set("maxmemory", 0)
}

func readOnly(b *bed) {
	b.do("REPLICAOF", "127.0.0.1", 1)
	pause(leaseTTL / 4)
	b.do("REPLICAOF", "NO", "ONE")
	pause(leaseTTL / 2)
	b.do("REPLICAOF", "127.0.0.1", 1)
	pause(longerThanLease)
	b.do("REPLICAOF", "NO", "ONE")
}

func loading(b *bed) {
	b.do("DEBUG", "POPULATE", 400, "filler")
	b.set("key-load-delay", 1000, "loading-process-events-interval-bytes", 1024)
	b.do("DEBUG", "RELOAD")
	b.set("key-load-delay", 0)
	fillers, err := b.admin.Keys(context.Background(), "filler:*").Result()
	if err == nil {
		err = b.admin.Del(context.Background(), fillers...).Err()
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// blocked is a directory where the server wants to write its dump.
const blocked = "blocked.rdb"

func prepareMisconf(b *bed) {
	if err := os.Mkdir(filepath.Join(b.setting("dir"), blocked), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		b.t.Fatal(err)
	}
}

func misconf(b *bed) {
	prepareMisconf(b)
	b.set("dbfilename", blocked, "save", "3600 1")
	b.do("BGSAVE")
	testredis.Eventually(b.t, 10*time.Second, func() bool {
		info, err := b.admin.Info(context.Background(), "persistence").Result()
		return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
	}, "the server cannot save")
	pause(longerThanLease)
	b.set("save", "", "dbfilename", "dump.rdb")
}

func noReplicas(b *bed) {
	b.set("min-replicas-to-write", 1)
	pause(longerThanLease)
	b.set("min-replicas-to-write", 0)
}

func killConnections(b *bed) {
	for range 10 {
		b.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		b.do("CLIENT", "KILL", "TYPE", "pubsub")
		pause(30 * time.Millisecond)
	}
}

func persistLocks(b *bed) {
	for range 50 {
		for _, key := range b.locks {
			b.do("PERSIST", key)
		}
		pause(10 * time.Millisecond)
	}
}

// Fault 41: scripts are forgotten all the time.
// fault: 41
func TestScriptFlush(t *testing.T) {
	storm(t, named("script flush"))
}

// Fault 45: writes and everything are held back, shorter and longer than a lease.
// fault: 45
func TestClientPause(t *testing.T) {
	storm(t, named("client pause"))
}

// Fault 23: a slow command, shorter and longer than a lease.
// fault: 23
func TestDebugSleep(t *testing.T) {
	storm(t, named("debug sleep"))
}

// Fault 23: a server that does not run for a while.
// fault: 23
func TestFrozenServer(t *testing.T) {
	storm(t, named("frozen server"))
}

// Fault 42: out of memory under noeviction.
// fault: 42
func TestOutOfMemory(t *testing.T) {
	storm(t, named("out of memory"))
}

// Fault 33: the server is a replica for a while.
// fault: 33
func TestReadOnly(t *testing.T) {
	storm(t, named("read only"))
}

// Fault 39: the server loads its data for a while.
// fault: 39
func TestLoading(t *testing.T) {
	storm(t, named("loading"))
}

// Fault 44: the server cannot save, and refuses writes.
// fault: 44
func TestMisconf(t *testing.T) {
	storm(t, named("misconf"))
}

// Fault 44: the server misses its replicas, and refuses writes.
// fault: 44
func TestNoReplicas(t *testing.T) {
	storm(t, named("no replicas"))
}

// Fault 24: connections are broken over and over.
// fault: 24
func TestKilledConnections(t *testing.T) {
	storm(t, named("killed connections"))
}

// Fault 49: a third party takes the TTL off locks; the next renewal sets it
// again, and exclusion holds.
// fault: 49
func TestPersist(t *testing.T) {
	storm(t, named("persist"))
}
