package chaos_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// dataNemeses take locks away, or bring old ones back.
var dataNemeses = []nemesis{
	{name: "flushall", topology: "single", damage: drops, strike: flushAll},
	{name: "deleted by others", topology: "single", damage: drops, strike: deleteLocks},
	{name: "expired by others", topology: "single", damage: drops, strike: expireLocks},
	{name: "renamed", topology: "single", damage: restores, strike: renameLocks},
	{name: "type changed", topology: "single", damage: drops, strike: changeType},
	{name: "evicted allkeys", topology: "single", damage: drops, strike: func(b *bed) { evict(b, "allkeys-lru") }},
	{name: "evicted volatile", topology: "single", damage: drops, strike: func(b *bed) { evict(b, "volatile-ttl") }},
	{name: "restart empty", topology: "single", damage: drops, strays: true, strike: restartEmpty},
	{name: "restart aof", topology: "aof", damage: restores, strays: true, strike: restartAOF},
	{name: "restart old snapshot", topology: "single", damage: restores, strays: true, strike: restartSnapshot},
}

func flushAll(b *bed) {
	for range 10 {
		b.do("FLUSHALL")
		pause(40 * time.Millisecond)
	}
}

func deleteLocks(b *bed) {
	for range 20 {
		b.do("DEL", b.locks[b.rng.IntN(len(b.locks))])
		pause(20 * time.Millisecond)
	}
}

func expireLocks(b *bed) {
	for range 20 {
		b.do("PEXPIRE", b.locks[b.rng.IntN(len(b.locks))], 5)
		pause(20 * time.Millisecond)
	}
}

func renameLocks(b *bed) {
	ctx := context.Background()
	for range 10 {
		key := b.locks[b.rng.IntN(len(b.locks))]
		// There may be nothing to rename.
		if b.admin.Rename(ctx, key, key+":aside").Err() == nil {
			pause(20 * time.Millisecond)
			_ = b.admin.Rename(ctx, key+":aside", key).Err()
		}
		pause(20 * time.Millisecond)
	}
}

func changeType(b *bed) {
	for range 5 {
		key := b.locks[b.rng.IntN(len(b.locks))]
		b.do("DEL", key)
		// A client may be faster: then it is a lock again, and no list.
		_ = b.admin.RPush(context.Background(), key, "a", "b").Err()
		pause(100 * time.Millisecond)
		b.do("DEL", key)
	}
}

func evict(b *bed, policy string) {
	for range 5 {
		b.set("maxmemory-policy", policy, "maxmemory", 1)
		// Any write evicts all that the policy lets it, and is then refused.
		_ = b.admin.Set(context.Background(), "filler", "x", time.Second).Err()
		b.set("maxmemory", 0, "maxmemory-policy", "noeviction")
		pause(50 * time.Millisecond)
	}
}

// removeDump takes away what a server would load at its start.
func (b *bed) removeDump(dir string) {
	if err := os.RemoveAll(filepath.Join(dir, "dump.rdb")); err != nil {
		b.t.Fatal(err)
	}
}

func restartEmpty(b *bed) {
	dir := b.setting("dir")
	b.srv.Kill()
	b.removeDump(dir)
	pause(50 * time.Millisecond)
	b.srv.Restart()
}

// restartAOF is a crash of the machine: what was not yet on disk is gone, and
// that may end in the middle of a command.
func restartAOF(b *bed) {
	dir := b.setting("dir")
	synced := aofSize(b, dir)
	pause(time.Duration(20+b.rng.IntN(400)) * time.Millisecond)
	b.srv.Kill()
	truncateAOF(b, dir, min(aofSize(b, dir), synced+17))
	b.srv.Restart()
}

// aofFile returns the file that the server appends to.
func aofFile(b *bed, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		b.t.Fatalf("append only files: %v, %v", files, err)
	}
	return files[0]
}

func aofSize(b *bed, dir string) int64 {
	info, err := os.Stat(aofFile(b, dir))
	if err != nil {
		b.t.Fatal(err)
	}
	return info.Size()
}

func truncateAOF(b *bed, dir string, size int64) {
	if err := os.Truncate(aofFile(b, dir), size); err != nil {
		b.t.Fatal(err)
	}
}

func restartSnapshot(b *bed) {
	b.do("SAVE")
	pause(time.Duration(20+b.rng.IntN(300)) * time.Millisecond)
	b.srv.Kill()
	b.srv.Restart()
}

// Fault 48: everything is gone, again and again.
// fault: 48
func TestFlushAll(t *testing.T) {
	storm(t, named("flushall"))
}

// Fault 49: a third party deletes locks.
// fault: 49
func TestDeletedByOthers(t *testing.T) {
	storm(t, named("deleted by others"))
}

// Fault 49: a third party lets locks expire.
// fault: 49
func TestExpiredByOthers(t *testing.T) {
	storm(t, named("expired by others"))
}

// Fault 49: a third party renames locks, and names them back over later ones.
// fault: 49
func TestRenamed(t *testing.T) {
	storm(t, named("renamed"))
}

// Fault 51: a third party stores a list in place of a lock.
// fault: 51
func TestTypeChanged(t *testing.T) {
	storm(t, named("type changed"))
}

// Fault 43: locks, metadata and fence counters are evicted.
// fault: 43
func TestEvictedAllKeys(t *testing.T) {
	storm(t, named("evicted allkeys"))
}

// Fault 43: everything with a TTL is evicted.
// fault: 43
func TestEvictedVolatile(t *testing.T) {
	storm(t, named("evicted volatile"))
}

// Fault 27: restart without persistence.
// fault: 27
func TestRestartEmpty(t *testing.T) {
	storm(t, named("restart empty"))
}

// Fault 28: restart with an append only file that misses its end.
// fault: 28
func TestRestartAOF(t *testing.T) {
	storm(t, named("restart aof"))
}

// Fault 29: restart with an old snapshot: locks that were released are back.
// fault: 29
func TestRestartOldSnapshot(t *testing.T) {
	storm(t, named("restart old snapshot"))
}
