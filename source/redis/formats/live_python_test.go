package formats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
)

// Each program takes its lock as the library does, blocking, and releases it
// when it is informed to.
const (
	redisPyProgram = `
import sys, redis
lock = redis.Redis(port=int(sys.argv[1])).lock("report-lock", timeout=%TIMEOUT%)
print("waiting", flush=True)
assert lock.acquire(blocking=True)
print("held", flush=True)
for line in sys.stdin:
    try:
        lock.release()
        print("released", flush=True)
    except redis.exceptions.LockNotOwnedError:
        print("not owned", flush=True)
`
	redisPyAsyncProgram = `
import asyncio, sys, redis.asyncio, redis
async def main():
    client = redis.asyncio.Redis(port=int(sys.argv[1]))
    lock = client.lock("report-lock")
    print("waiting", flush=True)
    assert await lock.acquire(blocking=True)
    print("held", flush=True)
    for line in sys.stdin:
        try:
            await lock.release()
            print("released", flush=True)
        except redis.exceptions.LockNotOwnedError:
            print("not owned", flush=True)
    await client.close()
asyncio.run(main())
`
	dogpileProgram = `
import sys, redis
from dogpile.cache import make_region
region = make_region().configure("dogpile.cache.redis", arguments={
    "host": "127.0.0.1", "port": int(sys.argv[1]), "distributed_lock": True, "thread_local_lock": False})
lock = region.backend.get_mutex("user:1")
print("waiting", flush=True)
assert lock.acquire(True)
print("held", flush=True)
for line in sys.stdin:
    try:
        lock.release()
        print("released", flush=True)
    except redis.exceptions.LockNotOwnedError:
        print("not owned", flush=True)
`
	// RQ's scheduler tries again by itself every ten minutes; here it is asked to.
	rqProgram = `
import sys, time, redis
from rq.scheduler import RQScheduler
scheduler = RQScheduler(["mail"], connection=redis.Redis(port=int(sys.argv[1])))
print("waiting", flush=True)
while not scheduler.acquire_locks():
    time.sleep(0.02)
print("held", flush=True)
for line in sys.stdin:
    scheduler.release_locks()
    print("released", flush=True)
`
)

// The lock of a live process of the real library is recognised, released by
// force, and goes to the process that waits; the old holder cannot take it back
// from there, but for RQ, whose release asks nobody.
func TestLivePython(t *testing.T) {
	t.Parallel()
	high := func(ttl time.Duration, identity locksteward.Identity) locksteward.Lock {
		return locksteward.Lock{Observation: locksteward.Observation{Type: "string", Confidence: locksteward.ConfidenceHigh, Identity: identity, TTL: ttl}}
	}
	strong := locksteward.IdentityStrong
	for _, tt := range []struct {
		name, packages, probe, program string
		l                              live
	}{
		{"redis-py", "python3-redis", "import redis", withTimeout(redisPyProgram, "None"), live{format: "redis-py", key: "report-lock", want: high(locksteward.NoExpiry, strong), after: "not owned"}},
		{"redis-py with timeout", "python3-redis", "import redis", withTimeout(redisPyProgram, "60"), live{format: "redis-py", key: "report-lock", want: high(time.Minute, strong), after: "not owned"}},
		{"redis-py asyncio", "python3-redis", "import redis.asyncio", redisPyAsyncProgram, live{format: "redis-py", key: "report-lock", want: high(locksteward.NoExpiry, strong), after: "not owned"}},
		{"dogpile", "python3-redis python3-dogpile.cache", "import redis, dogpile.cache", dogpileProgram, live{format: "dogpile", key: "_lockuser:1", want: high(locksteward.NoExpiry, strong), after: "not owned"}},
		{"rq", "python3-redis python3-rq", "import redis, rq", rqProgram, live{format: "rq-scheduler", key: "rq:scheduler-lock:mail", want: high(61*time.Second, locksteward.IdentityLineage), after: "released"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			python := interpreter(t, true, tt.packages, []string{"-c", tt.probe}, "/usr/bin/python3", "python3")
			tt.l.program, tt.l.poll = []string{python, "-c", tt.program}, "set"
			tt.l.run(t)
		})
	}
}

func withTimeout(program, timeout string) string {
	return strings.ReplaceAll(program, "%TIMEOUT%", timeout)
}
