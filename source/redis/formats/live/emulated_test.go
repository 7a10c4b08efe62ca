package live_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
)

const (
	firstToken  = "lock_token:5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	secondToken = "lock_token:7c9e6679-7425-40de-944b-e07fc1f90ae7"
)

// The modules of go-redislock and Dapr cannot be had everywhere: what their
// scripts do is done here with the same commands.
var (
	// lua/reentrantLock.lua
	goRedisLock = redis.NewScript(`local counter = KEYS[1] .. ':count:' .. ARGV[1]
		if tonumber(redis.call('GET', counter) or '0') > 0 or redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 5000) then
			redis.call('INCR', counter) redis.call('PEXPIRE', counter, 5000) redis.call('PEXPIRE', KEYS[1], 5000)
			return 1
		end
		return 0`)
	// lua/fairLock.lua
	goFairLock = redis.NewScript(`local queue = KEYS[1] .. ':queue'
		redis.call('ZADD', queue, 'NX', redis.call('TIME')[1] * 1000 + ARGV[2], ARGV[1]) redis.call('PEXPIRE', queue, 5000)
		if redis.call('ZRANGE', queue, 0, 0)[1] ~= ARGV[1] then return 0 end
		return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 5000) and 1 or 0`)
	// lua/writeLock.lua, of a lock that nobody has
	goWriteLock = redis.NewScript(`if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
		redis.call('HSET', KEYS[1], 'mode', 'write', 'writer', ARGV[1], 'wcount', 1)
		return redis.call('PEXPIRE', KEYS[1], 5000)`)
)

// takes runs one of the scripts and says whether it got the lock.
func (l lab) takes(t *testing.T, script *redis.Script, key string, args ...any) bool {
	t.Helper()
	n, err := script.Run(t.Context(), l.client, []string{key}, args...).Int()
	must(t, err)
	return n == 1
}

func TestGoRedisLock(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const key = "{order}"
	for range 2 {
		if !l.takes(t, goRedisLock, key, firstToken) {
			t.Fatal("the lock is not free")
		}
	}
	l.check(t, wants{
		key: key, typ: "string", format: "go-redislock-reentrant",
		confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityLineage, count: 2, ttl: 5 * time.Second,
	})
	l.free(t, key)
	if !l.takes(t, goRedisLock, key, secondToken) {
		t.Fatal("the waiter does not get the lock")
	}
	if l.takes(t, goRedisLock, key, firstToken) {
		t.Error("the old holder is let in beside the new one")
	}
}

func TestGoRedisLockFair(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const key = "{ticket-lock}"
	for i, want := range []bool{true, false, false} {
		if got := l.takes(t, goFairLock, key, "req-"+string(rune('1'+i)), i); got != want {
			t.Fatalf("request %d gets the lock: %t, want %t", i+1, got, want)
		}
	}
	got := l.check(t, wants{
		key: key, typ: "string", format: "go-redislock-fair",
		confidence: locksteward.ConfidenceMedium, identity: locksteward.IdentityLineage, ttl: 5 * time.Second,
	})
	if got.Waiters != 2 {
		t.Errorf("waiters = %d, want 2", got.Waiters)
	}
	l.free(t, key)
	if l.takes(t, goFairLock, key, "req-3", 2) {
		t.Error("the second in the queue gets the lock before the first")
	}
	if !l.takes(t, goFairLock, key, "req-2", 1) {
		t.Error("the first in the queue does not get the lock")
	}
}

func TestGoRedisLockRW(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const key = "stock-lock"
	if !l.takes(t, goWriteLock, key, firstToken) {
		t.Fatal("the lock is not free")
	}
	l.check(t, wants{
		key: key, typ: "hash", format: "go-redislock-rw",
		confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityLineage, ttl: 5 * time.Second,
	})
	l.free(t, key)
	if !l.takes(t, goWriteLock, key, secondToken) {
		t.Error("the waiter does not get the lock")
	}
}

func TestDapr(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const key, owner = "lock||shop||order", "5b1f3c2e-9d4a-4b7c-8e21-0c6f5a9d3b17"
	// lock/redis/standalone.go: TryLock and Unlock.
	unlock := redis.NewScript(`local v = redis.call('GET', KEYS[1]) if not v then return -1 end
		if v ~= ARGV[1] then return -2 end return redis.call('DEL', KEYS[1])`)
	must(t, l.client.SetArgs(t.Context(), key, owner, redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err())
	l.check(t, wants{
		key: key, typ: "string", format: "dapr-lock",
		confidence: locksteward.ConfidenceHigh, identity: locksteward.IdentityLineage,
		holder: locksteward.Holder{App: "shop"}, ttl: time.Minute,
	})
	l.free(t, key)
	must(t, l.client.SetArgs(t.Context(), key, "another-owner", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err())
	if n, err := unlock.Run(t.Context(), l.client, []string{key}, owner).Int(); err != nil || n != -2 {
		t.Errorf("the old owner's unlock = %d, %v, want -2, of another owner", n, err)
	}
}
